"""The partition state machine, as data.

A partition is NonExistent until it is seen in a topic's znode, New until a leader was written for the first time,
Online while it has one, Offline while it has none. `TRANSITIONS` says which state may follow which (reference:
Kafka's PartitionState.validPreviousStates); what a transition writes and sends is decided by the handlers.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class PartitionPhase(Enum):
    """The state of a partition in its state machine."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


TRANSITIONS: Final[Mapping[PartitionPhase, frozenset[PartitionPhase]]] = {
    PartitionPhase.NON_EXISTENT: frozenset({PartitionPhase.NEW}),
    PartitionPhase.NEW: frozenset({PartitionPhase.ONLINE, PartitionPhase.OFFLINE}),
    PartitionPhase.ONLINE: frozenset({PartitionPhase.ONLINE, PartitionPhase.OFFLINE}),
    PartitionPhase.OFFLINE: frozenset({PartitionPhase.ONLINE, PartitionPhase.OFFLINE, PartitionPhase.NON_EXISTENT}),
}
"""From each state, the states that may follow."""
