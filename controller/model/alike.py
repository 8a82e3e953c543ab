"""Decisions about many partitions, taken once for all that are alike.

A large cluster has few combinations of replicas, leader and ISR, so a large round decides once for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import chain
from typing import TypeVar

from controller.model.context import ControllerContext
from controller.model.known_topics import assignment_of
from transport.messages import PartitionState
from transport.metadata import NEVER_LED, LeaderAndIsr, TopicPartition

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
