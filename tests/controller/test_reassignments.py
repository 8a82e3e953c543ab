"""The rounds of a reassignment, against the memory store."""

from __future__ import annotations

import pytest
from attrs import evolve

from controller.handlers import reassignment_requests, reassignments
from controller.handlers.brokers import broker_change
from controller.handlers.failover import failover
from controller.handlers.topics import topic_change
from controller.rounds import TellStopReplica
from tests.controller.conftest import Bench
from transport.errors import ErrorCode
from transport.messages import ReassignablePartition
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create

TP = TopicPartition("orders", 0)
BROKERS = (1, 2, 3, 4, 5, 6)


async def start(bench: Bench, *replicas: int) -> None:
    await bench.register(*BROKERS)
    await bench.write_topic("orders", replicas)
    await bench.run(failover(bench.context, iter(())))
    bench.seen.rounds.clear()
    bench.seen.commits.clear()


async def grow_isr(bench: Bench, *isr: int) -> None:
    """What an AlterPartition would write."""
    state = await bench.read_state(TP)
    await bench.write_state(TP, evolve(state, isr=isr))
    from controller.handlers.leadership import refresh

    await bench.run(refresh(bench.context, [TP]))


@pytest.mark.requirement("A7")
async def test_a_move_goes_through_the_six_rows(bench: Bench) -> None:
    await start(bench, 1, 2, 3)
    await bench.run(reassignments.begin(bench.context, {TP: (4, 5, 6)}))
    await grow_isr(bench, 1, 2, 3, 4, 5, 6)
    await bench.run(reassignments.finish(bench.context, [TP]))

    rows = [
        (commit.round, state.replicas, state.adding_replicas, state.removing_replicas, state.leader, state.isr)
        for commit in bench.seen.commits
        for state in commit.partitions
    ]
    both, target, origin = (4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3)
    assert rows == [
        ("U1", both, target, origin, 1, origin),
        ("A1", both, target, origin, 1, origin),
        ("B3", both, target, origin, 4, (1, 2, 3, 4, 5, 6)),
        ("B4", both, target, origin, 4, target),
        ("B6", target, (), (), 4, target),
    ]
    zxids = [commit.zxid for commit in bench.seen.commits]
    assert zxids == sorted(set(zxids))
    assert await bench.read_assignment(TP) == ReplicaAssignment(target)
    assert (await bench.read_state(TP)).leader_epoch == 3
