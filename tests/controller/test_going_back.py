"""A cancel restores the order of the replicas, and never leaves an ISR that is too small for acks=all."""

from __future__ import annotations

import pytest
from attrs import evolve

from controller.events import TopicDeletion
from tests.controller.conftest import TP, Bench
from transport.errors import ErrorCode
from transport.metadata import ReplicaAssignment
from transport.store import paths
from transport.store.protocol import Create, Set


async def require_two_in_sync(bench: Bench) -> None:
    """Let topics need two in-sync replicas from the next controller on."""
    bench.context.config = evolve(bench.context.config, min_insync_replicas=2)


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("fails_over", [False, True])
async def test_a_cancel_restores_the_order_that_the_target_does_not_share(bench: Bench, *, fails_over: bool) -> None:
    await bench.begin_move((1, 2, 3), (3, 4))
    await bench.move(TP, (5, 3, 2))
    if fails_over:
        await bench.fail_over()
    assert bench.context.assignment(TP).origin_replicas == (3, 2, 1)
    assert (await bench.move(TP, None)).error is ErrorCode.NONE
    assert await bench.read_assignment(TP) == ReplicaAssignment((1, 2, 3))


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("data", [b"", b"by hand", b'{"partitions":[{"topic":"orders","partition":0,"replicas":[7]}]}'])
async def test_where_the_order_is_not_known_any_more_the_set_is_restored(bench: Bench, data: bytes) -> None:
    await bench.begin_move((1, 2, 3), (3, 4))
    await bench.store.multi([Set(paths.reassignment(TP), data, -1)])
    await bench.fail_over()
    assert (await bench.move(TP, None)).error is ErrorCode.NONE
    assert await bench.read_assignment(TP) == ReplicaAssignment((3, 1, 2))


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("fails_over", [False, True])
async def test_a_cancel_that_would_leave_too_few_in_the_isr_is_a_move_back(bench: Bench, *, fails_over: bool) -> None:
    await bench.start((1, 2, 3))
    await require_two_in_sync(bench)
    await bench.move(TP, (4, 5, 6))
    await bench.alter_isr(TP, 1, 4, 5)
    bench.seen.clear()
    assert (await bench.move(TP, None)).error is ErrorCode.NONE
    assert await bench.read_assignment(TP) == ReplicaAssignment((1, 2, 3, 4, 5), (), (4, 5))
    assert (await bench.read_state(TP)).isr == (1, 4, 5)
    assert bench.seen.stopped(delete=True) == {6}
    # Asked once more, it goes on as it does.
    if fails_over:
        await bench.fail_over()
    before = await bench.read_assignment(TP)
    assert (await bench.move(TP, None)).error is ErrorCode.NONE
    assert await bench.read_assignment(TP) == before

    await bench.alter_isr(TP, 1, 4, 5, 2, 3)
    assert await bench.read_assignment(TP) == ReplicaAssignment((1, 2, 3))
    state = await bench.read_state(TP)
    assert (state.leader, sorted(state.isr)) == (1, [1, 2, 3])
    assert bench.seen.stopped(delete=True) == {4, 5, 6}


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("isr", [(1, 2, 4), (1,)], ids=["enough are left", "none leaves"])
async def test_a_cancel_that_takes_nothing_from_producers_is_done_at_once(bench: Bench, isr: tuple[int, ...]) -> None:
    await bench.start((1, 2, 3))
    await require_two_in_sync(bench)
    await bench.move(TP, (4, 5, 6))
    await bench.alter_isr(TP, *isr)
    assert (await bench.move(TP, None)).error is ErrorCode.NONE
    assert await bench.read_assignment(TP) == ReplicaAssignment((1, 2, 3))


async def test_a_move_of_a_topic_that_is_being_deleted_is_not_cancelled(bench: Bench) -> None:
    await bench.begin_move((1, 2, 3), (3, 4))
    await bench.kill(2)
    await bench.store.multi([Create(paths.delete_topic(TP.topic))])
    await bench.handle(TopicDeletion())
    assert TP.topic in bench.context.deletions
    assert (await bench.move(TP, None)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
