"""The state machines of partitions and replicas, as data: from each state, the states that may follow.

A partition is NonExistent until it appears in a topic's znode, New until its first leader has been written, Online
while it has a leader, and Offline while it has none. A replica is New when it joins a partition, Online while its
broker is alive, and Offline while the broker is not alive or the replica was told to stop. It passes through the
deletion states before it ceases to exist. (Reference: validPreviousStates of Kafka's PartitionState and ReplicaState.)
The handlers decide what a transition writes and sends.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class PartitionPhase(Enum):
    """The state of a partition in its state machine."""

    __hash__ = object.__hash__  # Enum's own is a function in Python.

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


PARTITION_TRANSITIONS: Final[Mapping[PartitionPhase, frozenset[PartitionPhase]]] = {
    PartitionPhase.NON_EXISTENT: frozenset({PartitionPhase.NEW}),
    PartitionPhase.NEW: frozenset({PartitionPhase.ONLINE, PartitionPhase.OFFLINE}),
    PartitionPhase.ONLINE: frozenset({PartitionPhase.ONLINE, PartitionPhase.OFFLINE}),
    PartitionPhase.OFFLINE: frozenset({PartitionPhase.ONLINE, PartitionPhase.OFFLINE, PartitionPhase.NON_EXISTENT}),
}


class ReplicaPhase(Enum):
    """The state of one replica of a partition in its state machine."""

    __hash__ = object.__hash__

    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"


Row = tuple[PartitionPhase | None, tuple[ReplicaPhase | None, ...]]
"""The states of a partition and of its replicas in the order of its assignment: None for one without a state, () if no
replica has one."""

REPLICA_TRANSITIONS: Final[Mapping[ReplicaPhase, frozenset[ReplicaPhase]]] = {
    ReplicaPhase.NON_EXISTENT: frozenset({ReplicaPhase.NEW}),
    ReplicaPhase.NEW: frozenset({ReplicaPhase.ONLINE, ReplicaPhase.OFFLINE}),
    ReplicaPhase.ONLINE: frozenset({ReplicaPhase.ONLINE, ReplicaPhase.OFFLINE}),
    ReplicaPhase.OFFLINE: frozenset(
        {
            ReplicaPhase.ONLINE,
            ReplicaPhase.OFFLINE,
            ReplicaPhase.DELETION_STARTED,
            ReplicaPhase.DELETION_INELIGIBLE,
        }
    ),
    ReplicaPhase.DELETION_STARTED: frozenset({ReplicaPhase.DELETION_SUCCESSFUL, ReplicaPhase.DELETION_INELIGIBLE}),
    ReplicaPhase.DELETION_SUCCESSFUL: frozenset({ReplicaPhase.NON_EXISTENT}),
    ReplicaPhase.DELETION_INELIGIBLE: frozenset({ReplicaPhase.ONLINE, ReplicaPhase.OFFLINE}),
}
