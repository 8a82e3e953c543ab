"""Decisions about many partitions, taken once for all that are alike.

A large cluster has few combinations of replicas, leader and ISR, so a large round decides once for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import chain, repeat
from typing import TypeVar

from controller.model.context import ControllerContext
from controller.model.known_topics import assignments_of
from transport.metadata import NEVER_LED, TopicPartition

T = TypeVar("T")


def singular(context: ControllerContext) -> frozenset[TopicPartition]:
    """Return the partitions of whose replicas one differs from others on its broker: they are like no others."""
    return frozenset(tp for tp, _ in chain(context.on_offline_dirs, context.waiting, context.recalled))


def decide_all(
    context: ControllerContext,
    tps: Sequence[TopicPartition],
    decide: Callable[[TopicPartition], T],
    kinds: Sequence[Hashable] | None = None,
    taken: dict[Hashable, T] | None = None,
) -> list[T]:
    """Return what `decide` returns for known partitions, called once for all that are alike and of the same kind.

    The decision has to follow from the replicas, the leader, the ISR, and the brokers that are alive. `taken` has the
    decisions about others, and gets these.
    """
    alone, taken = singular(context), {} if taken is None else taken
    led = [context.leadership.get(tp, NEVER_LED) for tp in tps]
    decisions = []
    for tp, assignment, state, kind in zip(
        tps, assignments_of(context.topics, tps), led, kinds or repeat(None, len(tps)), strict=True
    ):
        key = assignment.replicas, state.leader, state.isr, kind
        try:
            decision = decide(tp) if tp in alone else taken[key]
        except KeyError:
            decision = taken[key] = decide(tp)
        decisions.append(decision)
    return decisions
