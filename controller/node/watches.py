"""The event to process when the watch on a znode fires."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from controller.events import (
    BrokerChange,
    BrokerModifications,
    ConfigChange,
    ControllerEvent,
    Elect,
    IsrChangeNotification,
    LogDirEventNotification,
    PartitionModifications,
    PreferredReplicaElection,
    TopicChange,
    TopicDeletion,
    ZkPartitionReassignment,
)
from transport.store import paths

_WATCHED: Final[dict[str, ControllerEvent]] = {
    paths.CONTROLLER: Elect(),
    paths.BROKER_IDS: BrokerChange(),
    paths.TOPICS: TopicChange(),
    paths.CONFIG_CHANGES: ConfigChange(),
    paths.DELETE_TOPICS: TopicDeletion(),
    paths.REASSIGN_PARTITIONS: ZkPartitionReassignment(),
    paths.PREFERRED_REPLICA_ELECTION: PreferredReplicaElection(),
    paths.ISR_CHANGE_NOTIFICATION: IsrChangeNotification(),
    paths.LOG_DIR_EVENT_NOTIFICATION: LogDirEventNotification(),
}

LOOKS: Final = (
    ConfigChange(),
    TopicDeletion(),
    ZkPartitionReassignment(),
    PreferredReplicaElection(),
    IsrChangeNotification(),
    LogDirEventNotification(),
)
"""The events to process after a time without watches, in addition to those of brokers and topics.

Each reads its znodes and watches them again.
"""

_WATCHED_BELOW: Final[dict[str, Callable[[str], ControllerEvent]]] = {
    paths.BROKER_IDS: lambda name: BrokerModifications(int(name)),
    paths.TOPICS: PartitionModifications,
}
"""By parent path: makes the event for a change of the child with a given name."""


def event_for(path: str) -> ControllerEvent:
    """Return the event to process when the watch at `path` fires."""
    if path in _WATCHED:
        return _WATCHED[path]
    parent, _, name = path.rpartition("/")
    return _WATCHED_BELOW[parent](name)
