"""Decisions about many partitions, taken once for all that are alike.

A large cluster has few combinations of replicas, leader and ISR, so a large round decides once for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import chain
from typing import TypeVar

from controller.model.context import ControllerContext
from controller.model.known_topics import assignment_of
from transport.metadata import NEVER_LED, TopicPartition

T = TypeVar("T")


def singular(context: ControllerContext) -> frozenset[TopicPartition]:
    """Return the partitions of whose replicas one differs from others on its broker: they are like no others."""
    return frozenset(tp for tp, _ in chain(context.on_offline_dirs, context.waiting, context.recalled))


def alike(
    context: ControllerContext,
    decide: Callable[[TopicPartition], T],
    kind: Callable[[TopicPartition], Hashable] | None = None,
) -> Callable[[TopicPartition], T]:
    """Return `decide`, called once for all partitions that are alike, and of the same `kind`.

    The decision has to follow from the replicas, the leader, the ISR, and the brokers that are alive. It is valid as
    long as nothing is applied to the context.
    """
    leadership, topics, alone = context.leadership, context.topics, singular(context)
    taken: dict[Hashable, T] = {}

    def decided(tp: TopicPartition) -> T:
        if tp in alone:
            return decide(tp)
        state, assignment = leadership.get(tp, NEVER_LED), assignment_of(topics, tp)
        key = assignment.replicas, state.leader, state.isr, kind and kind(tp)
        try:
            return taken[key]
        except KeyError:
            decision = taken[key] = decide(tp)
            return decision

    return decided
