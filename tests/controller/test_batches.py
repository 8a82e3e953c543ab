"""Thousands of partitions at once: few multis, none over the store's limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from controller.events import ZkPartitionReassignment
from controller.handlers import reassignments
from tests.controller.conftest import Bench
from transport.errors import ErrorCode
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
)
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.limits import DEFAULT_LIMITS
from transport.store.protocol import Create

ORIGIN, TARGET = (1, 2, 3), (4, 5, 6)
MANY = 2500
WHOLE_CLUSTER = 10_000
CHUNK = reassignments.MAX_PARTITIONS

LARGE_IDS = tuple(range(2_000_000_001, 2_000_000_007))
"""Ids of brokers that make a topic's znode large."""

TOO_MANY = 6_000
"""Partitions whose moves between these brokers would make it too large."""


@pytest.mark.soak
@pytest.mark.requirement("A11")
async def test_thousands_of_moves_in_one_topic_are_cancelled(bench: Bench) -> None:
    await bench.start(*[ORIGIN] * MANY)
    tps = bench.context.partitions()
    await bench.run(reassignments.begin(bench.context, dict.fromkeys(tps, TARGET)))
    bench.seen.clear()
    await bench.run(reassignments.begin(bench.context, dict.fromkeys(tps, ORIGIN)))
    assert bench.context.reassigning == {}
    for tp in (tps[0], tps[-1]):
        assert await bench.read_assignment(tp) == bench.context.assignment(tp) == ReplicaAssignment(ORIGIN)
    assert len(bench.context.strays) == len(TARGET) * MANY
    assert len(bench.seen.commits) < MANY / 100


@pytest.mark.requirement("A11")
async def test_thousands_of_moves_in_one_topic_end_together(bench: Bench) -> None:
    await bench.start(*[ORIGIN] * MANY)
    tps = bench.context.partitions()
    await bench.run(reassignments.begin(bench.context, dict.fromkeys(tps, TARGET)))
    for tp in tps:
        await bench.write_state(tp, replace(bench.context.leadership[tp], isr=(*ORIGIN, *TARGET)))
    bench.seen.clear()
    await bench.fail_over()
    assert bench.context.reassigning == {}
    for tp in (tps[0], tps[-1]):
        assert await bench.read_assignment(tp) == bench.context.assignment(tp) == ReplicaAssignment(TARGET)
    assert len(bench.context.strays) == len(ORIGIN) * MANY
    # What a new controller found of each is in the trace, but is no commit.
    assert len([commit for commit in bench.seen.commits if commit.round != "loaded"]) < MANY / 100


def request_of(targets: dict[TopicPartition, tuple[int, ...]]) -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest(tuple(ReassignablePartition(*tp, new) for tp, new in targets.items()))


async def topic_versions(bench: Bench, names: Sequence[str]) -> list[int]:
    znodes = await bench.store.read([paths.topic(name) for name in names])
    return [znode.stat.version for znode in znodes if znode is not None]


@pytest.mark.requirement("A1", "A11")
async def test_ten_thousand_partitions_of_one_topic_take_one_write_of_its_znode_a_chunk(bench: Bench) -> None:
    await bench.start(*[ORIGIN] * WHOLE_CLUSTER)
    tps = bench.context.partitions()
    answer = await bench.ask(request_of(dict.fromkeys(tps, TARGET)), AlterPartitionReassignmentsResponse)
    assert Counter(item.error for item in answer.partitions) == {ErrorCode.NONE: WHOLE_CLUSTER}
    assert len(bench.context.reassigning) == WHOLE_CLUSTER
    assert await topic_versions(bench, ["orders"]) == [WHOLE_CLUSTER / CHUNK]


@pytest.mark.soak
@pytest.mark.requirement("A1", "A11")
async def test_ten_thousand_partitions_of_many_topics_take_one_write_of_each_znode(bench: Bench) -> None:
    names = [f"topic-{number}" for number in range(20)]
    await bench.register(1, 2, 3, 4, 5, 6)
    for name in names:
        await bench.write_topic(name, *[ORIGIN] * (WHOLE_CLUSTER // len(names)))
    await bench.start(brokers=())
    tps = bench.context.partitions()
    await bench.request_moves(dict.fromkeys(tps, TARGET))
    await bench.handle(ZkPartitionReassignment())
    assert len(bench.context.reassigning) == WHOLE_CLUSTER
    assert await topic_versions(bench, names) == [1] * len(names)


@pytest.mark.requirement("A3", "A11")
async def test_a_topic_that_would_outgrow_its_znode_is_refused_whole_and_others_are_not(bench: Bench) -> None:
    origin, target = LARGE_IDS[:3], LARGE_IDS[3:]
    await bench.register(*LARGE_IDS)
    await bench.write_topic("payments", origin)
    await bench.start(*[origin] * TOO_MANY, brokers=())
    tps = bench.context.partitions()
    answer = await bench.ask(request_of(dict.fromkeys(tps, target)), AlterPartitionReassignmentsResponse)
    refused = [item for item in answer.partitions if item.error is not ErrorCode.NONE]
    assert {(item.topic, item.error) for item in refused} == {("orders", ErrorCode.INVALID_REQUEST)}
    assert len(refused) == TOO_MANY
    assert "move fewer of them at a time" in refused[0].message
    assert await topic_versions(bench, ["orders", "payments"]) == [0, 1]

    # Half of them have room, and the other half has none until they are done or cancelled.
    half = [tp for tp in tps if tp.topic == "orders"][: TOO_MANY // 2]
    for replicas in (target, None):
        request = AlterPartitionReassignmentsRequest(tuple(ReassignablePartition(*tp, replicas) for tp in half))
        answer = await bench.ask(request, AlterPartitionReassignmentsResponse)
        assert {item.error for item in answer.partitions} == {ErrorCode.NONE}
    assert not any(tp.topic == "orders" for tp in bench.context.reassigning)


@pytest.mark.requirement("A3", "A11")
async def test_the_requests_that_would_outgrow_a_topics_znode_leave_the_list(bench: Bench) -> None:
    origin, target = LARGE_IDS[:3], LARGE_IDS[3:]
    await bench.register(*LARGE_IDS)
    await bench.write_topic("payments", origin)
    await bench.start(*[origin] * TOO_MANY, brokers=())
    await bench.request_moves(dict.fromkeys(bench.context.partitions(), target))
    with capture_logs() as logs:
        await bench.handle(ZkPartitionReassignment())
    assert "move fewer of them at a time" in logs[0]["reason"]
    assert await topic_versions(bench, ["orders", "payments"]) == [0, 1]
    assert await bench.requested_moves() == {TopicPartition("payments", 0): target}


@pytest.mark.requirement("A11")
async def test_the_moves_of_a_large_topic_end_in_smaller_steps(bench: Bench) -> None:
    """Small writes next to a large znode keep a multi within its limit; otherwise the office would be lost."""
    name = "x" * 100
    brokers = tuple(range(2_000_000_001, 2_000_000_025))
    origin, target = brokers[:12], brokers[12:]
    moving = ReplicaAssignment((*target, *origin), target, origin)
    topic = formats.TopicZnode(dict.fromkeys(range(1_600), moving), "id-of-it")
    data = formats.encode_topic(topic)
    assert 0.95 < len(data) / DEFAULT_LIMITS.topic < 1
    await bench.register(*brokers)
    await bench.store.multi([Create(paths.topic(name), data)])
    # Nobody has led yet, so that all begin in the ISR.
    await bench.start(brokers=())
    assert bench.context.reassigning == {}
    assert len(bench.context.strays) == len(origin) * len(topic.partitions)
    assert await bench.read_assignment(TopicPartition(name, 0)) == ReplicaAssignment(target)


@pytest.mark.requirement("A11")
async def test_two_partitions_without_room_for_both_are_written_one_by_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first takes three writes: its topic, the parent of the reassignment znodes, and the first of these."""
    await bench.start(ORIGIN, ORIGIN)
    room = bench.context.config.request_limits.group
    monkeypatch.setattr(reassignments, "weight_of", lambda writes: len(writes) * (room // 3))
    await bench.run(reassignments.begin(bench.context, dict.fromkeys(bench.context.partitions(), TARGET)))
    assert len(bench.context.reassigning) == 2
    assert await topic_versions(bench, ["orders"]) == [2]
