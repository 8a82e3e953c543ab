"""The states of many partitions, as published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from controller.model.choosing import singular
from controller.model.context import ControllerContext
from controller.model.state_machines import ReplicaPhase
from transport.messages import PartitionState
from transport.metadata import LEADER_DURING_DELETE, LeaderAndIsr, TopicPartition
from transport.store.formats import TopicZnode

_INELIGIBLE: Final = ReplicaPhase.DELETION_INELIGIBLE


def describe_all(
    context: ControllerContext,
    tps: Iterable[TopicPartition],
    leaderships: Iterable[LeaderAndIsr],
    topics: Mapping[str, TopicZnode] | None = None,
) -> list[PartitionState]:
    """Return the states of partitions as published, with leaderships and `topics` that are about to be committed."""
    alone = singular(context)
    offline: dict[tuple[int, ...], tuple[int, ...]] = {}
    states = []
    for tp, leadership in zip(tps, leaderships, strict=True):
        znode = topics[tp[0]] if topics else context.topics[tp[0]].znode
        assignment = znode.partitions[tp[1]]
        replicas = assignment.replicas
        dead = context.offline(tp, replicas) if alone and tp in alone else offline.get(replicas)
        if dead is None:
            dead = offline[replicas] = context.offline(tp, replicas)
        states.append(PartitionState.of(tp, znode.topic_id or "", assignment, leadership, dead))
    return states


def describe_led(context: ControllerContext, tps: Iterable[TopicPartition] | None = None) -> list[PartitionState]:
    """Return the states of all partitions that have leadership, or of those among `tps`, as published."""
    leadership = context.leadership
    led = leadership if tps is None else [tp for tp in tps if tp in leadership]
    return describe_all(context, led, map(leadership.__getitem__, led))


def describe_deletions(context: ControllerContext, names: Iterable[str] | None = None) -> tuple[PartitionState, ...]:
    """Return the states of partitions of topics being deleted, of all or of those named: without a leader.

    The replicas that the deletion waits for are listed as offline.
    """
    led_by_nobody = LeaderAndIsr(LEADER_DURING_DELETE, 0, (), 0, context.epoch)

    @cache
    def offline(replicas: tuple[int, ...], phases: tuple[ReplicaPhase | None, ...]) -> tuple[int, ...]:
        return tuple([r for r, phase in zip(replicas, phases, strict=True) if phase is _INELIGIBLE])

    states = []
    for name in context.deletions if names is None else names:
        znode, topic_id = context.topics[name].znode, context.topic_id(name)
        for tp in context.partitions([name]):
            assignment = znode.partitions[tp.partition]
            dead = offline(assignment.replicas, context.replica_phases.of(tp))
            states.append(PartitionState.of(tp, topic_id, assignment, led_by_nobody, dead))
    return tuple(states)
