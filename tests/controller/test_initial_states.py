"""Partitions that a new controller finds are judged and applied together, as if each had been alone."""

from __future__ import annotations

from hypothesis import given, strategies as st

from controller.handlers.failover import initial_rows
from controller.model.context import ControllerContext
from controller.model.facts import (
    BrokerRegistered,
    BrokerShuttingDown,
    PartitionsFound,
    TopicWritten,
)
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from tests.controller.failures import log_lost
from transport.messages import BrokerEndpoint
from transport.metadata import NO_LEADER, BrokerRegistration, LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store.formats import TopicZnode

IDS = range(1, 5)
# Few sets of replicas and leaders, so that many partitions are alike.
replicas = st.sampled_from([(1, 2, 3), (2, 3), (4,)])
leaderships = st.builds(LeaderAndIsr, st.sampled_from((NO_LEADER, 2, 4)), st.just(0), replicas, st.just(0), st.just(1))


def context_with(
    assigned: dict[int, tuple[int, ...]], live: set[int], stopping: set[int], broken: set[tuple[int, int]]
) -> ControllerContext:
    context = ControllerContext(BrokerEndpoint(1001, "127.0.0.1", 1), epoch=1, epoch_version=1)
    partitions = {number: ReplicaAssignment(of) for number, of in assigned.items()}
    context.apply(TopicWritten("orders", TopicZnode(partitions, "id"), 0))
    for id_ in live:
        context.apply(BrokerRegistered(BrokerRegistration(id_, "127.0.0.1", 1, 1)))
    for id_ in stopping:
        context.apply(BrokerShuttingDown(id_))
    for number, id_ in broken:
        context.apply(log_lost(TopicPartition("orders", number), id_))
    return context


def judge_alone(
    context: ControllerContext, tp: TopicPartition, state: LeaderAndIsr | None
) -> tuple[PartitionPhase, dict[int, ReplicaPhase]]:
    """Judge one partition: the form of which `initial_rows` is that for many."""
    phase = PartitionPhase.NEW
    if state is not None:
        phase = PartitionPhase.ONLINE if context.is_online(tp, state.leader) else PartitionPhase.OFFLINE
    held = context.assignment(tp).replicas
    return phase, {r: ReplicaPhase.ONLINE if context.is_online(tp, r) else ReplicaPhase.OFFLINE for r in held}


@given(
    st.lists(st.tuples(replicas, st.none() | leaderships), min_size=2, max_size=8),
    st.sets(st.sampled_from(IDS)),
    st.sets(st.sampled_from(IDS)),
    st.sets(st.tuples(st.integers(0, 4), st.sampled_from(IDS)), max_size=8),
)
def test_partitions_are_found_together_as_they_are_found_alone(
    partitions: list[tuple[tuple[int, ...], LeaderAndIsr | None]],
    live: set[int],
    stopping: set[int],
    broken: set[tuple[int, int]],
) -> None:
    context = context_with({number: of for number, (of, _) in enumerate(partitions)}, live, stopping, broken)
    tps, states = context.partitions(), [state for _, state in partitions]
    alone = {tp: judge_alone(context, tp, state) for tp, state in zip(tps, states, strict=True)}
    context.apply(PartitionsFound(tps, states, initial_rows(context, tps, states)))

    assert context.leadership == {tp: state for tp, state in zip(tps, states, strict=True) if state is not None}
    assert list(context.leadership) == [tp for tp in tps if tp in context.leadership]
    assert dict(context.partition_phases) == {tp: phase for tp, (phase, _) in alone.items()}
    assert dict(context.replica_phases) == {(tp, r): phase for tp, (_, of) in alone.items() for r, phase in of.items()}
