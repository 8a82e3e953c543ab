"""Elections with a named order: the replicas take it and the first of them leads, or nothing changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.controller.conftest import TP, Bench
from tests.kit.told import Order
from transport.errors import ApiError, ErrorCode
from transport.messages import ElectionType, ElectLeadersRequest, ElectLeadersResponse, LeaderOrder
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import paths
from transport.store.protocol import Create, Delete, Op, Set

SECOND, THIRD = TopicPartition("orders", 1), TopicPartition("orders", 2)

Orders = Mapping[TopicPartition, Sequence[int]]


async def elect(bench: Bench, orders: Orders, *plain: TopicPartition) -> dict[TopicPartition, ErrorCode]:
    """Ask for elections, with an order or without; return the outcomes, which must say in words what is wrong."""
    named = tuple(LeaderOrder(*tp, tuple(order)) for tp, order in orders.items())
    request = ElectLeadersRequest(ElectionType.PREFERRED, plain or None, named)
    results = (await bench.ask(request, ElectLeadersResponse)).partitions
    assert all(bool(item.message) is (item.error is not ErrorCode.NONE) for item in results)
    return {item.tp: item.error for item in results}


async def stored(bench: Bench, tp: TopicPartition) -> tuple[ReplicaAssignment, LeaderAndIsr]:
    """Return what the store holds of a partition."""
    return await bench.read_assignment(tp), await bench.read_state(tp)


@pytest.mark.requirement("C2")
async def test_a_new_order_and_its_first_as_the_leader_are_one_commit_that_brokers_hear_of(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    assert await elect(bench, {TP: (3, 1, 2)}) == {TP: ErrorCode.NONE}
    assert await bench.read_assignment(TP) == bench.context.assignment(TP) == ReplicaAssignment((3, 1, 2))
    state = await bench.read_state(TP)
    assert (state.leader, state.isr, state.leader_epoch) == (3, (1, 2, 3), 1)
    assert bench.seen.rounds == ["order", "(order)"]
    [told] = bench.seen.leader_and_isr()
    assert (told.brokers, told.state.replicas, told.state.leader) == ((3, 1, 2), (3, 1, 2), 3)
    assert bench.seen.latest_metadata(TP).replicas == (3, 1, 2)


@pytest.mark.requirement("C2")
async def test_where_the_first_leads_already_brokers_hear_of_the_new_order_in_a_new_epoch(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    assert await elect(bench, {TP: (1, 3, 2)}) == {TP: ErrorCode.NONE}
    assignment, state = await stored(bench, TP)
    assert (assignment.replicas, state.leader, state.leader_epoch) == ((1, 3, 2), 1, 1)
    [told] = bench.seen.leader_and_isr()
    assert told == Order((1, 3, 2), bench.context.describe(TP))


@pytest.mark.requirement("C2")
async def test_with_the_order_that_it_has_a_partition_gets_a_plain_election(bench: Bench) -> None:
    await bench.start((1, 2, 3), (1, 2, 3))
    await bench.kill(1)
    await bench.revive(1)
    await bench.alter_isr(TP, 2, 3, 1)
    bench.seen.clear()
    assert await elect(bench, {TP: (1, 2, 3)}, SECOND) == {
        TP: ErrorCode.NONE,
        SECOND: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    }
    assert bench.seen.rounds == ["elect", "(elect)"]
    assert (await bench.read_state(TP)).leader == 1
    assert await elect(bench, {TP: (1, 2, 3)}) == {TP: ErrorCode.ELECTION_NOT_NEEDED}


@pytest.mark.requirement("C2")
async def test_an_order_does_not_have_to_lead_for_others_in_the_same_request(bench: Bench) -> None:
    await bench.start((1, 2, 3), (2, 3, 1), (3, 2))
    assert await elect(bench, {TP: (2, 1), SECOND: (1, 2, 3)}, THIRD) == {
        TP: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        SECOND: ErrorCode.NONE,
        THIRD: ErrorCode.ELECTION_NOT_NEEDED,
    }
    assert (await bench.read_assignment(TP)).replicas == (1, 2, 3)
    assert (await bench.read_assignment(SECOND)).replicas == (1, 2, 3)


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    ("order", "error"),
    [
        ((), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 2), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((2, 2, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((2, 1, 4), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((2, 1, 3, 3), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((-1, 1, 2, 3), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((3, 1, 2), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        ((2, 1, 3), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
    ],
)
async def test_what_cannot_be_done_is_refused_and_nothing_is_written(
    bench: Bench, order: tuple[int, ...], error: ErrorCode
) -> None:
    """3 is dead, 2 is alive and outside the ISR."""
    await bench.start((1, 2, 3))
    await bench.kill(3)
    await bench.alter_isr(TP, 1)
    bench.seen.clear()
    before = await stored(bench, TP)
    assert await elect(bench, {TP: order}) == {TP: error}
    assert await stored(bench, TP) == before
    assert (bench.seen.commits, bench.seen.published) == ([], [])


@pytest.mark.requirement("C2")
async def test_an_order_for_a_partition_that_moves_is_refused(bench: Bench) -> None:
    await bench.begin_move((1, 2, 3), (4, 2, 3))
    before = await stored(bench, TP)
    for order in ((4, 2, 3, 1), (4, 2, 3), (1, 2, 3)):
        assert await elect(bench, {TP: order}) == {TP: ErrorCode.REASSIGNMENT_IN_PROGRESS}
    assert await stored(bench, TP) == before
    await bench.fail_over()
    assert await elect(bench, {TP: (2, 4, 3, 1)}) == {TP: ErrorCode.REASSIGNMENT_IN_PROGRESS}
    await bench.move(TP, None)
    assert await elect(bench, {TP: (2, 3, 1)}) == {TP: ErrorCode.NONE}


@pytest.mark.requirement("C2")
async def test_an_order_for_what_is_deleted_or_was_never_there_is_refused(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.kill(3)
    await bench.store.multi([Create(paths.delete_topic("orders"))])
    await bench.fail_over()
    bench.seen.clear()
    nowhere = TopicPartition("nowhere", 0)
    assert await elect(bench, {TP: (2, 1, 3), nowhere: (1,)}) == {
        TP: ErrorCode.INVALID_TOPIC_EXCEPTION,
        nowhere: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert bench.seen.commits == []


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    "request_",
    [
        ElectLeadersRequest(ElectionType.UNCLEAN, None, (LeaderOrder(*TP, (2, 1, 3)),)),
        ElectLeadersRequest(ElectionType.PREFERRED, None, (LeaderOrder(*TP, (2, 1, 3)), LeaderOrder(*TP, (3, 1, 2)))),
    ],
)
async def test_orders_that_cannot_be_meant_are_refused_whole(bench: Bench, request_: ElectLeadersRequest) -> None:
    await bench.start((1, 2, 3))
    with pytest.raises(ApiError, match="INVALID_REQUEST"):
        await bench.ask(request_, ElectLeadersResponse)
    assert bench.seen.commits == []


@pytest.mark.requirement("C2")
async def test_thousands_of_orders_take_one_write_of_the_topic_for_each_chunk(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 1200
    await bench.start(*[(1, 2, 3)] * count)
    multis: list[list[Op]] = []
    multi = bench.store.multi

    async def counted(ops: list[Op]) -> object:
        multis.append(list(ops))
        return await multi(ops)

    monkeypatch.setattr(type(bench.store), "multi", lambda _, ops, **__: counted(ops))
    outcomes = await elect(bench, {TopicPartition("orders", number): (2, 3, 1) for number in range(count)})
    monkeypatch.undo()
    assert set(outcomes.values()) == {ErrorCode.NONE}
    assert [sum(isinstance(op, Set) and op.path == paths.topic("orders") for op in ops) for ops in multis] == [1, 1, 1]
    for number in (0, count - 1):
        assignment, state = await stored(bench, TopicPartition("orders", number))
        assert (assignment.replicas, state.leader) == ((2, 3, 1), 2)


# --- others write, and controllers die --------------------------------------------------------------------------


@pytest.mark.requirement("C2")
async def test_what_was_rewritten_meanwhile_is_read_and_done_again(bench: Bench) -> None:
    await bench.start((1, 2, 3), (1, 2, 3))
    await bench.change_topic("orders", 2, ReplicaAssignment((4, 5)))
    state = await bench.read_state(SECOND)
    await bench.write_state(SECOND, LeaderAndIsr(1, state.leader_epoch, (1, 3), 0, state.controller_epoch))
    assert await elect(bench, {TP: (3, 1, 2), SECOND: (2, 1, 3)}) == {
        TP: ErrorCode.NONE,
        SECOND: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    }
    first, led = await stored(bench, TP)
    assert (first.replicas, led.leader) == ((3, 1, 2), 3)
    second, led = await stored(bench, SECOND)
    assert (second.replicas, led.leader, led.isr) == ((1, 2, 3), 1, (1, 3))
    assert (await bench.read_assignment(THIRD)).replicas == (4, 5)


@pytest.mark.requirement("C2")
async def test_a_topic_that_is_gone_meanwhile_is_told(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.delete_topic("orders", 1)
    assert await elect(bench, {TP: (3, 1, 2)}) == {TP: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.requirement("C2")
async def test_a_state_that_is_gone_meanwhile_is_told(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.store.multi([Delete(paths.partition_state(TP), -1)])
    assert await elect(bench, {TP: (3, 1, 2)}) == {TP: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert (await bench.read_assignment(TP)).replicas == (1, 2, 3)


@pytest.mark.requirement("C2", "A8")
async def test_the_next_controller_is_content_with_what_one_that_died_had_put_in_order(bench: Bench) -> None:
    """It dies between two chunks, before it told anybody: one is in order, the other as it was."""
    count = 600
    await bench.start(*[(1, 2, 3)] * count)
    orders = {TopicPartition("orders", number): (3, 1, 2) for number in range(count)}
    await bench.crash(elect(bench, orders), after="order")
    bench.seen.clear()
    await bench.fail_over()
    for tp, replicas, leader in ((TP, (3, 1, 2), 3), (TopicPartition("orders", count - 1), (1, 2, 3), 1)):
        assignment, state = await stored(bench, tp)
        assert (assignment, state.leader) == (ReplicaAssignment(replicas), leader)
        assert bench.context.assignment(tp) == assignment
        told = bench.seen.latest_metadata(tp)
        assert (told.replicas, told.leader) == (replicas, leader)
    assert set((await elect(bench, orders)).values()) == {ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED}
