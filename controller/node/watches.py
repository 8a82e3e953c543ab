"""The event to process when the watch on a znode fires."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from controller import events
from transport.store import kafka_acls, paths
from transport.store.kafka_office import DECISIVE

_WATCHED: Final[dict[str, events.ControllerEvent]] = {
    **dict.fromkeys((*DECISIVE, paths.CLUSTER_ID), events.Elect()),
    paths.BROKER_IDS: events.BrokerChange(),
    paths.TOPICS: events.TopicChange(),
    paths.CONFIG_CHANGES: events.ConfigChange(),
    paths.DELETE_TOPICS: events.TopicDeletion(),
    paths.REASSIGN_PARTITIONS: events.ZkPartitionReassignment(),
    paths.PREFERRED_REPLICA_ELECTION: events.PreferredReplicaElection(),
    paths.ISR_CHANGE_NOTIFICATION: events.IsrChangeNotification(),
    paths.LOG_DIR_EVENT_NOTIFICATION: events.LogDirEventNotification(),
}

_READ_BY_RELOAD: Final = (*DECISIVE, paths.CLUSTER_ID, paths.BROKER_IDS, paths.TOPICS)
LOOKS: Final = tuple(event for path, event in _WATCHED.items() if path not in _READ_BY_RELOAD)
"""The events to process after a time without watches, in addition to those of brokers and topics.

Each reads its znodes and watches them again.
"""

_WATCHED_BELOW: Final[dict[str, Callable[[str], events.ControllerEvent]]] = {
    paths.BROKER_IDS: lambda name: events.BrokerModifications(int(name)),
    paths.TOPICS: events.PartitionModifications,
}
"""By parent path: makes the event for a change of the child with a given name."""

_OF_OTHERS: Final = (kafka_acls.CHANGES, kafka_acls.EXTENDED_CHANGES)
"""The watches of an authorizer in the same session."""


def event_for(path: str) -> events.ControllerEvent | None:
    """Return the event to process when the watch at `path` fires; None if it is not the controller's."""
    if path in _WATCHED:
        return _WATCHED[path]
    if path in _OF_OTHERS:
        return None
    parent, _, name = path.rpartition("/")
    return _WATCHED_BELOW[parent](name)
