"""The replica state machine, as data.

A replica is New when it joins a partition, Online while its broker is alive, Offline while it is not or was told to
stop; the deletion states lead it out of existence. `TRANSITIONS` says which state may follow which (reference:
Kafka's ReplicaState.validPreviousStates).
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
