"""Decisions about many partitions, taken once for all that are alike.

A large cluster has few combinations of replicas, leader and ISR, so a large round decides once for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import chain
from typing import Generic, TypeVar

from controller.model.context import ControllerContext
from transport.messages import PartitionState
from transport.metadata import LeaderAndIsr, TopicPartition

T = TypeVar("T")


def singular(context: ControllerContext) -> frozenset[TopicPartition]:
    """Return the partitions of whose replicas one differs from others on its broker: they are like no others."""
    return frozenset(tp for tp, _ in chain(context.on_offline_dirs, context.waiting, context.recalled))


class Alike(Generic[T]):
    """A decision that depends on a partition's replicas, leader and ISR, on which brokers are alive, and on its `kind`.

    It is valid as long as nothing is applied to the context.
    """

    def __init__(
        self,
        context: ControllerContext,
        decide: Callable[[TopicPartition], T],
        kind: Callable[[TopicPartition], Hashable] = lambda _: None,
    ) -> None:
        self._context = context
        self._decide = decide
        self._kind = kind
        self._singular = singular(context)
        self._taken: dict[Hashable, T] = {}

    def __call__(self, tp: TopicPartition) -> T:
        """Return the decision about a partition that has leadership."""
        if tp in self._singular:
            return self._decide(tp)
        state = self._context.leadership[tp]
        key = self._context.assignment(tp).replicas, state.leader, state.isr, self._kind(tp)
        try:
            return self._taken[key]
        except KeyError:
            decision = self._taken[key] = self._decide(tp)
            return decision


def describe_all(
    context: ControllerContext, tps: Iterable[TopicPartition], leaderships: Iterable[LeaderAndIsr]
) -> list[PartitionState]:
    """Return the states of partitions as published, with leaderships that were or are about to be committed."""
    alone = singular(context)
    offline: dict[tuple[int, ...], tuple[int, ...]] = {}
    states = []
    for tp, leadership in zip(tps, leaderships, strict=True):
        znode = context.topics[tp.topic].znode
        assignment = znode.partitions[tp.partition]
        replicas = assignment.replicas
        if tp in alone:
            dead = _offline(context, tp, replicas)
        elif replicas in offline:
            dead = offline[replicas]
        else:
            dead = offline[replicas] = _offline(context, tp, replicas)
        states.append(PartitionState.of(tp, znode.topic_id or "", assignment, leadership, dead))
    return states


def _offline(context: ControllerContext, tp: TopicPartition, replicas: tuple[int, ...]) -> tuple[int, ...]:
    online = context.online(tp, replicas)
    return tuple(r for r in replicas if r not in online)
