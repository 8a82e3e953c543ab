"""The four things that may be wrong with a partition: offline, under-replicated, under min ISR, imbalanced."""

from __future__ import annotations

from enum import Flag, auto
from typing import Final

from controller.model.context import ControllerContext
from controller.model.partition_states import PartitionPhase
from transport.metadata import NO_LEADER, TopicPartition


class Notable(Flag):
    """What is to be told of a partition; nothing if all is well."""

    NOTHING = 0
    OFFLINE = auto()
    """In the state Offline: nobody leads it."""

    UNDER_REPLICATED = auto()
    """The ISR has fewer members than the partition has replicas, but for those that a reassignment adds."""

    UNDER_MIN_ISR = auto()
    """It is led, and refuses acks=all."""

    IMBALANCED = auto()
    """It is led by another than its preferred leader."""


KINDS: Final = (Notable.OFFLINE, Notable.UNDER_REPLICATED, Notable.UNDER_MIN_ISR, Notable.IMBALANCED)


def judge(context: ControllerContext, tp: TopicPartition) -> Notable:
    """Return what is notable of a partition; of one that is being deleted, nothing."""
    if tp.topic in context.deletions:
        return Notable.NOTHING
    found = Notable.NOTHING
    if context.partition_phases.get(tp) is PartitionPhase.OFFLINE:
        found |= Notable.OFFLINE
    state = context.leadership.get(tp)
    assignment = context.assignment(tp)
    if state is None or not assignment.replicas:
        return found
    if len(state.isr) < len(assignment.replicas) - len(assignment.adding_replicas):
        found |= Notable.UNDER_REPLICATED
    if state.leader != NO_LEADER and len(state.isr) < context.min_isr(tp.topic):
        found |= Notable.UNDER_MIN_ISR
    if state.leader != assignment.replicas[0]:
        found |= Notable.IMBALANCED
    return found
