"""The replica state machine, as data.

A replica is New when it joins a partition, Online while its broker is alive, and Offline while the broker is not alive
or the replica was told to stop. It passes through the deletion states before it ceases to exist. `TRANSITIONS` lists
the states that may follow each state (reference: Kafka's ReplicaState.validPreviousStates).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class ReplicaPhase(Enum):
    """The state of one replica of a partition in its state machine."""

    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"


TRANSITIONS: Final[Mapping[ReplicaPhase, frozenset[ReplicaPhase]]] = {
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
"""From each state, the states that may follow."""
