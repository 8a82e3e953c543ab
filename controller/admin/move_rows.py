"""Presentation of a move: its stages, and a partition in the columns RS, AR, RR, leader and ISR."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from transport.messages import PartitionState

COLUMNS: Final = ("RS", "AR", "RR", "leader", "ISR")


class Stage(Enum):
    """The stages of a move, by the step that enters them."""

    INITIAL = "before"
    BRING_IN = "U1"
    CAUGHT_UP = "ISR"
    LED_INSIDE = "B3"
    TAKEN_OUT = "B4"
    DONE = "B6"


def stage_of(state: PartitionState, target: frozenset[int]) -> Stage:
    """Return the stage of a partition's move to `target`, judged by its state."""
    if not state.is_being_reassigned:
        return Stage.DONE if frozenset(state.replicas) == target else Stage.INITIAL
    if not target <= frozenset(state.isr):
        return Stage.BRING_IN
    if state.leader not in target:
        return Stage.CAUGHT_UP
    return Stage.TAKEN_OUT if frozenset(state.isr) <= target else Stage.LED_INSIDE


def cells(state: PartitionState) -> tuple[str, ...]:
    """Return the texts of the columns; the order of the ISR has no meaning, so it is sorted."""
    return (
        braces(state.replicas),
        braces(state.adding_replicas),
        braces(state.removing_replicas),
        str(state.leader),
        braces(sorted(state.isr)),
    )


def braces(brokers: Iterable[int]) -> str:
    """Return brokers as {1,2,3}."""
    return "{" + ",".join(map(str, brokers)) + "}"
