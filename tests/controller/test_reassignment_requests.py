"""Requests for reassignments: through the znode of Kafka's tools, and through the admin API."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from controller.events import ZkPartitionReassignment
from tests.controller.conftest import TP, Bench
from transport.errors import ErrorCode
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingReassignment,
    ReassignablePartition,
)
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import paths
from transport.store.protocol import Create, Set, StoreEvent, WatchFired, WatchKind

ORIGIN, TARGET, BOTH = (1, 2, 3), (4, 5, 6), (4, 5, 6, 1, 2, 3)
SECOND = TopicPartition("orders", 1)

REFUSALS = {
    "unknown topic": (TopicPartition("nobody", 0), TARGET, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "unknown partition": (TopicPartition("orders", 7), TARGET, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "unknown and empty": (TopicPartition("nobody", 0), (), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "empty": (TP, (), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    "twice the same": (TP, (4, 5, 4), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    "negative": (TP, (4, -5), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    "adding a dead one": (TP, (1, 2, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
}


@pytest.mark.requirement("A3")
@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
async def test_the_api_refuses_with_the_reason_and_goes_on_with_the_rest(
    bench: Bench, refusal: tuple[TopicPartition, tuple[int, ...], ErrorCode]
) -> None:
    tp, replicas, error = refusal
    await bench.start(ORIGIN, ORIGIN)
    request = AlterPartitionReassignmentsRequest(
        (ReassignablePartition(*tp, replicas), ReassignablePartition(*SECOND, TARGET))
    )
    refused, begun = (await bench.ask(request, AlterPartitionReassignmentsResponse)).partitions
    assert (refused.topic, refused.partition, refused.error) == (*tp, error)
    assert refused.message
    assert (begun.topic, begun.partition, begun.error) == (*SECOND, ErrorCode.NONE)
    assert await bench.read_assignment(TP) == ReplicaAssignment(ORIGIN)
    assert await bench.read_assignment(SECOND) == ReplicaAssignment(BOTH, TARGET, ORIGIN)


@pytest.mark.requirement("A3")
@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
async def test_the_znode_loses_what_is_refused_and_keeps_the_rest(
    bench: Bench, refusal: tuple[TopicPartition, tuple[int, ...], ErrorCode]
) -> None:
    tp, replicas, _ = refusal
    await bench.start(ORIGIN, ORIGIN)
    await bench.request_moves({tp: replicas, SECOND: TARGET})
    with capture_logs() as logs:
        await bench.handle(ZkPartitionReassignment())
    assert [(log["log_level"], log["partition"], bool(log["reason"])) for log in logs] == [("warning", str(tp), True)]
    assert await bench.requested_moves() == {SECOND: TARGET}
    assert await bench.read_assignment(TP) == ReplicaAssignment(ORIGIN)
    assert await bench.read_assignment(SECOND) == ReplicaAssignment(BOTH, TARGET, ORIGIN)


@pytest.mark.requirement("A3")
async def test_a_kept_replica_may_be_dead(bench: Bench) -> None:
    await bench.start(ORIGIN)
    await bench.kill(3)
    assert (await bench.move(TP, (4, 3))).error is ErrorCode.NONE
    assert await bench.read_assignment(TP) == ReplicaAssignment((4, 3, 1, 2), (4,), (1, 2))


@pytest.mark.requirement("A1", "A6")
async def test_a_move_through_the_znode_ends_with_its_entry_and_the_last_one_with_the_znode(bench: Bench) -> None:
    await bench.start(ORIGIN, ORIGIN)
    await bench.request_moves({TP: TARGET, SECOND: TARGET})
    await bench.handle(ZkPartitionReassignment())
    assert await bench.requested_moves() == {TP: TARGET, SECOND: TARGET}
    bench.seen.clear()

    await bench.alter_isr(TP, *ORIGIN, *TARGET)
    assert await bench.read_assignment(TP) == ReplicaAssignment(TARGET)
    assert await bench.requested_moves() == {SECOND: TARGET}
    # The entry goes after the assignment.
    assert bench.seen.rounds[-3:] == ["B6", "(B6)", "B7"]

    await bench.alter_isr(SECOND, *ORIGIN, *TARGET)
    assert await bench.read_assignment(SECOND) == ReplicaAssignment(TARGET)
    assert await bench.requested_moves() is None


@pytest.mark.requirement("A3")
async def test_what_is_in_place_already_counts_as_done(bench: Bench) -> None:
    await bench.start(ORIGIN)
    await bench.request_moves({TP: ORIGIN})
    await bench.handle(ZkPartitionReassignment())
    assert await bench.requested_moves() is None
    assert bench.seen.rounds == ["B7"]


@pytest.mark.requirement("A9")
async def test_reading_the_requests_again_leaves_a_waiting_move_and_its_entry_alone(bench: Bench) -> None:
    await bench.start(ORIGIN)
    await bench.request_moves({TP: TARGET})
    await bench.handle(ZkPartitionReassignment())
    await bench.kill(6)
    bench.seen.clear()
    await bench.handle(ZkPartitionReassignment())
    assert bench.seen.rounds == []
    assert await bench.requested_moves() == {TP: TARGET}
    await bench.fail_over()
    assert await bench.requested_moves() == {TP: TARGET}


async def test_an_entry_with_another_target_overrides_a_move(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    await bench.request_moves({TP: (1, 2, 4)})
    await bench.handle(ZkPartitionReassignment())
    assert await bench.read_assignment(TP) == ReplicaAssignment((1, 2, 4, 3), (4,), (3,))
    assert bench.seen.stopped(delete=True) == {5, 6}


@pytest.mark.parametrize("replicas", [(5, 6), None], ids=["override", "cancel"])
async def test_the_api_wins_over_the_znode(bench: Bench, replicas: tuple[int, ...] | None) -> None:
    await bench.start(ORIGIN, ORIGIN)
    await bench.request_moves({TP: TARGET, SECOND: TARGET})
    await bench.handle(ZkPartitionReassignment())
    assert (await bench.move(TP, replicas)).error is ErrorCode.NONE
    assert await bench.requested_moves() == {SECOND: TARGET}
    assert (await bench.read_assignment(TP)).target_replicas == (replicas or ORIGIN)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"version":1,"partitions":{}}', b'{"partitions":[7]}'])
async def test_requests_that_cannot_be_decoded_are_removed(bench: Bench, data: bytes) -> None:
    await bench.start(ORIGIN)
    await bench.store.multi([Create(paths.REASSIGN_PARTITIONS, data)])
    with capture_logs() as logs:
        await bench.handle(ZkPartitionReassignment())
    assert await bench.read(paths.REASSIGN_PARTITIONS) is None
    assert [log["log_level"] for log in logs] == ["error"]
    assert paths.REASSIGN_PARTITIONS in logs[0]["fault"]


async def test_the_requests_are_watched_also_where_there_are_none(bench: Bench) -> None:
    await bench.start(ORIGIN)
    fired: list[StoreEvent] = []
    bench.store.subscribe(fired.append)
    await bench.request_moves({TP: TARGET})
    assert WatchFired(paths.REASSIGN_PARTITIONS, WatchKind.CREATED) in fired
    await bench.handle(ZkPartitionReassignment())
    fired.clear()
    # The original does not notice a change of what is there (KAFKA-9478).
    await bench.store.multi([Set(paths.REASSIGN_PARTITIONS, b"{}", -1)])
    assert fired == [WatchFired(paths.REASSIGN_PARTITIONS, WatchKind.CHANGED)]


@pytest.mark.requirement("A9")
async def test_moves_under_way_are_listed_with_what_they_wait_for(bench: Bench) -> None:
    await bench.start(ORIGIN, ORIGIN, ORIGIN)
    await bench.move(SECOND, TARGET)
    await bench.move(TP, TARGET)
    listed = [
        OngoingReassignment(*tp, BOTH, TARGET, ORIGIN, leader=1, isr=ORIGIN)  # by topic and number
        for tp in (TP, SECOND)
    ]

    async def ask(partitions: tuple[TopicPartition, ...] | None) -> list[OngoingReassignment]:
        request = ListPartitionReassignmentsRequest(partitions)
        return list((await bench.ask(request, ListPartitionReassignmentsResponse)).partitions)

    assert await ask(None) == listed
    assert await ask((SECOND, TopicPartition("orders", 2), TopicPartition("nobody", 0))) == listed[1:]
    await bench.alter_isr(TP, *ORIGIN, *TARGET)
    assert await ask(None) == listed[1:]
