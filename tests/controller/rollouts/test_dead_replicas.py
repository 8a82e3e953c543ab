"""A dead replica that a move keeps blocks the move's end (A4): it is named, and holds up no other move."""

from __future__ import annotations

from tests.controller.rollouts.operator import Operator
from transport.messages import (
    ChangeRolloutRequest,
    ChangeRolloutResponse,
    DescribeReassignmentsRequest,
    DescribeReassignmentsResponse,
    RolloutMove,
    RolloutOrder,
    RolloutSettings,
    StartRolloutRequest,
    StartRolloutResponse,
)
from transport.metadata import TopicPartition

HELD = "broker 2 is not alive, and moves in flight end once it is in their ISRs"


async def begin(operator: Operator, in_all: int) -> None:
    """Start a rollout whose first moves keep broker 2, and whose later ones need it no more."""
    moves = [RolloutMove("orders", n, (3, 2), size=100) for n in range(2)]
    moves += [RolloutMove("orders", n, (3, 4), size=100) for n in range(2, 6)]
    assert (await operator.upload(*moves)).left_out == ()
    request = StartRolloutRequest("monday", "digest", 6, RolloutSettings(into=2, in_all=in_all), "alice")
    await operator.bench.ask(request, StartRolloutResponse)


async def test_moves_that_wait_for_a_dead_broker_are_named_and_use_up_no_limit(operator: Operator) -> None:
    await begin(operator, in_all=2)
    assert operator.in_flight() == [0, 1]
    await operator.bench.kill(2)
    for number in (0, 1):
        await operator.bench.alter_isr(TopicPartition("orders", number), 1, 3)
    order = ChangeRolloutRequest("monday", RolloutOrder.RESUME, without_dead=True)
    await operator.bench.ask(order, ChangeRolloutResponse)
    assert operator.in_flight() == [0, 1, 2, 3]
    assert dict((await operator.describe()).waits)[HELD] == 2

    described = await operator.bench.ask(DescribeReassignmentsRequest(), DescribeReassignmentsResponse)
    assert [move.waits_for for move in described.reassignments[:2]] == ["broker 2, which is not alive"] * 2
    for number in (2, 3, 4, 5):
        await operator.bench.alter_isr(TopicPartition("orders", number), 1, 3, 4)
    assert operator.in_flight() == [0, 1]
    assert (await operator.describe()).counts == (("in flight", 2), ("done", 4))
    await operator.bench.revive(2)
    await operator.catch_up(0, 1)
    assert (await operator.describe()).counts == (("done", 6),)


async def test_what_they_still_copy_counts_where_it_is_copied(operator: Operator) -> None:
    await begin(operator, in_all=2)
    await operator.bench.kill(2)
    order = ChangeRolloutRequest("monday", RolloutOrder.RESUME, without_dead=True)
    await operator.bench.ask(order, ChangeRolloutResponse)
    assert operator.in_flight() == [0, 1]
    assert "broker 3 receives 2 replicas, the most at once" in dict((await operator.describe()).waits)
