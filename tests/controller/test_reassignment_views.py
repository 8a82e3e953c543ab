"""Reassignments as administrators see them: the list, what each waits for, and its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest
from msgspec.structs import replace

from tests.controller.conftest import TP, Bench
from transport.errors import ErrorCode
from transport.messages import (
    UNKNOWN,
    UNTHROTTLED,
    DescribeReassignmentsRequest,
    DescribeReassignmentsResponse,
    ListReassignmentsRequest,
    ListReassignmentsResponse,
    ReassignmentDescription,
    ReassignmentKey,
    ReplicaProgress,
)
from transport.metadata import NO_LEADER, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Set

ORIGIN, TARGET, ALL_SIX = (1, 2, 3), (4, 5, 6), (1, 2, 3, 4, 5, 6)
SECOND, THIRD = TopicPartition("orders", 1), TopicPartition("orders", 2)


async def listed(bench: Bench, *tps: TopicPartition) -> ListReassignmentsResponse:
    wanted = tuple(tps) or None
    return await bench.ask(ListReassignmentsRequest(wanted), ListReassignmentsResponse)


async def described(bench: Bench, keys: Sequence[ReassignmentKey] | None = None) -> tuple[ReassignmentDescription, ...]:
    request = DescribeReassignmentsRequest(None if keys is None else tuple(keys))
    return (await bench.ask(request, DescribeReassignmentsResponse)).reassignments


@pytest.mark.requirement("B1")
async def test_lists_what_moves_of_all_partitions_or_of_those_named(bench: Bench) -> None:
    await bench.start(ORIGIN, ORIGIN, ORIGIN)
    assert await listed(bench) == ListReassignmentsResponse(())
    await bench.move(SECOND, TARGET)
    await bench.move(TP, TARGET)
    keys = tuple(ReassignmentKey(*tp, bench.context.reassigning[tp].czxid) for tp in (TP, SECOND))
    assert await listed(bench) == ListReassignmentsResponse(keys)
    assert await listed(bench, SECOND, THIRD, SECOND) == ListReassignmentsResponse(keys[1:])


@pytest.mark.requirement("B1")
async def test_tells_of_partitions_that_there_are_not(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    response = await listed(bench, TP, TopicPartition("orders", 7), TopicPartition("nothing", 0))
    assert [key.topic for key in response.reassignments] == ["orders"]
    assert [(error.topic, error.partition, error.error) for error in response.errors] == [
        ("nothing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert response.error is ErrorCode.NONE


@pytest.mark.requirement("B3")
async def test_describes_what_a_partition_has_and_is_to_have(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, (4, 5, 1))
    await bench.alter_isr(TP, 1, 2, 3, 4)
    identity = bench.context.reassigning[TP]
    [description] = await described(bench)
    assert description == ReassignmentDescription(
        "orders",
        0,
        identity.czxid,
        identity.start_time_ms,
        leader=1,
        leader_throttle=UNTHROTTLED,
        replicas=(4, 5, 1, 2, 3),
        adding_replicas=(4, 5),
        removing_replicas=(2, 3),
        isr=(1, 2, 3, 4),
        new_replicas=(4, 5, 1),
        progress=(ReplicaProgress(4, in_sync=True), ReplicaProgress(5), ReplicaProgress(1, in_sync=True)),
        waits_for="broker 5 to join the ISR",
    )
    assert {each.throttle for each in description.progress} == {UNTHROTTLED}
    assert (description.rate, description.eta_ms) == (UNKNOWN, UNKNOWN)


@pytest.mark.requirement("B2", "B3")
async def test_one_that_is_over_is_left_out_even_if_its_partition_moves_again(bench: Bench) -> None:
    await bench.start(ORIGIN, ORIGIN)
    await bench.move(TP, TARGET)
    await bench.move(SECOND, TARGET)
    keys = (await listed(bench)).reassignments
    assert [each.partition for each in await described(bench, [*keys[1:], *keys])] == [1, 0]
    await bench.alter_isr(TP, *ALL_SIX)
    assert [each.partition for each in await described(bench, keys)] == [1]
    await bench.move(TP, ORIGIN)
    assert [each.partition for each in await described(bench, keys)] == [1]
    assert [each.partition for each in await described(bench)] == [0, 1]
    assert await described(bench, []) == ()
    assert await described(bench, [replace(keys[1], topic="other")]) == ()


async def a_dead_broker(bench: Bench) -> None:
    await bench.kill(5)


async def a_dead_isr(bench: Bench) -> None:
    await bench.kill(1, 2, 3)


@pytest.mark.requirement("A9", "B3")
@pytest.mark.parametrize(
    ("happens", "text"),
    [
        (a_dead_broker, "broker 5, which is not alive; brokers 4, 6 to join the ISR"),
        (a_dead_isr, "a leader: none of the ISR is alive, which is brokers 1, 2, 3"),
    ],
)
async def test_says_what_a_move_waits_for(bench: Bench, happens: Callable[[Bench], Awaitable[None]], text: str) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    await happens(bench)
    [description] = await described(bench)
    assert description.waits_for == text


@pytest.mark.requirement("B1")
async def test_a_topic_that_is_being_deleted_is_unknown(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    await bench.store.multi([Create(paths.delete_topic("orders"))])
    await bench.fail_over()
    response = await listed(bench, TP)
    assert response.reassignments == ()
    assert [error.error for error in response.errors] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await described(bench) == ()


async def test_describes_a_partition_that_never_had_a_leader(bench: Bench) -> None:
    await bench.start(ORIGIN)
    await bench.write_topic("new", (7,))
    await bench.change_topic("new", 0, ReplicaAssignment((8, 7), (8,), (7,)))
    await bench.fail_over()
    [description] = await described(bench)
    assert (description.leader, description.isr, description.new_replicas) == (NO_LEADER, (), (8,))


async def write_config(bench: Bench, path: str, **settings: str) -> None:
    """Write settings; in their names underscores stand for dots."""
    data = formats.encode_config({name.replace("_", "."): value for name, value in settings.items()})
    [found] = await bench.store.read([path])
    await bench.store.multi([Create(path, data) if found is None else Set(path, data, found.stat.version)])


async def throttles(bench: Bench) -> tuple[int, list[int]]:
    [move] = await described(bench)
    return move.leader_throttle, [item.throttle for item in move.progress]


@pytest.mark.requirement("B3", "A11")
async def test_tells_the_throttles_that_are_in_effect(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    assert await throttles(bench) == (UNTHROTTLED, [UNTHROTTLED] * 3)

    await write_config(
        bench,
        paths.topic_config("orders"),
        leader_replication_throttled_replicas="0:1,0:2,0:3",
        follower_replication_throttled_replicas="0:4,0:5,1:6",
    )
    assert await throttles(bench) == (UNTHROTTLED, [UNTHROTTLED] * 3)
    await write_config(bench, paths.broker_config(1), leader_replication_throttled_rate="100")
    await write_config(bench, paths.broker_config(4), follower_replication_throttled_rate="400")
    await write_config(bench, paths.broker_config(None), follower_replication_throttled_rate="7")
    assert await throttles(bench) == (100, [400, 7, UNTHROTTLED])

    await bench.alter_isr(TP, *ORIGIN, 4)  # no throttle holds back who is in the ISR
    assert await throttles(bench) == (100, [UNTHROTTLED, 7, UNTHROTTLED])
    await write_config(bench, paths.topic_config("orders"), follower_replication_throttled_replicas="*")
    assert await throttles(bench) == (UNTHROTTLED, [UNTHROTTLED, 7, 7])


@pytest.mark.requirement("B3")
async def test_settings_that_cannot_be_read_throttle_nothing(bench: Bench) -> None:
    await bench.begin_move(ORIGIN, TARGET)
    await bench.store.multi([Create(paths.topic_config("orders"), b"{")])
    await write_config(bench, paths.broker_config(4), follower_replication_throttled_rate="400")
    assert await throttles(bench) == (UNTHROTTLED, [UNTHROTTLED] * 3)
