"""The four conditions of a partition that are reported: offline, under-replicated, under min ISR, imbalanced."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Flag, auto

from controller.model.context import ControllerContext
from controller.model.state_machines import PartitionPhase
from transport.metadata import NO_LEADER, TopicPartition


class Notable(Flag):
    """The conditions of a partition that are reported; NOTHING for a healthy one."""

    NOTHING = 0
    OFFLINE = auto()
    """The partition is in the state Offline: it has no leader."""

    UNDER_REPLICATED = auto()
    """The ISR is smaller than the replica set without the replicas that a reassignment adds."""

    UNDER_MIN_ISR = auto()
    """The partition has a leader, which rejects acks=all."""

    IMBALANCED = auto()
    """The leader is not the preferred one, that is the first replica."""


def judge_all(context: ControllerContext, tps: Sequence[TopicPartition]) -> list[Notable]:
    """Return the conditions of each of many partitions, judged once for all that are alike."""
    judged: dict[Hashable, Notable] = {}
    found = []
    for tp, phase in zip(tps, context.partition_phases.of_all(tps), strict=True):
        state, assignment = context.leadership.get(tp), context.assignment(tp)
        led = state and (state.leader, len(state.isr))
        replicas = assignment.replicas, assignment.adding_replicas
        key = phase, led, replicas, context.min_isr(tp.topic), tp.topic in context.deletions
        if key not in judged:
            judged[key] = judge(context, tp)
        found.append(judged[key])
    return found


def judge(context: ControllerContext, tp: TopicPartition) -> Notable:
    """Return a partition's conditions; NOTHING if its topic is being deleted."""
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
