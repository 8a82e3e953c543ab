"""The partition state machine, as data.

A partition is NonExistent until it appears in a topic's znode, New until its first leader has been written, Online
while it has a leader, and Offline while it has none. `TRANSITIONS` lists the states that may follow each state
(reference: Kafka's PartitionState.validPreviousStates). The handlers decide what a transition writes and sends.
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
