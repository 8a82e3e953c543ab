"""The bytes left of rollouts, their rate and time left, and the number of moves that wait."""

from __future__ import annotations

import pytest
import trio

from controller.events import RolloutLook, RoomSeen
from controller.node import dispatch
from tests.controller.conftest import BROKERS
from tests.controller.rollouts.operator import Operator
from transport.host import Host
from transport.messages import RolloutDescription, RolloutOrder
from transport.metadata import TopicPartition

pytestmark = pytest.mark.usefixtures("autojump_clock")

LOOK = dispatch.EVENTS[RolloutLook]


async def seen(operator: Operator, times: int, clock_ms: int = 0) -> RolloutDescription:
    """Let moves end and the controller look around every ten seconds, and describe the rollout."""
    for _ in range(times):
        await trio.sleep(10)
        await operator.catch_up()
        await operator.bench.run(LOOK(operator.bench.context, RolloutLook(), Host(lambda: clock_ms)))
    return await operator.describe()


async def test_the_time_left_of_an_undo_is_by_what_is_moved_back(operator: Operator) -> None:
    await operator.start(20, into=2)
    described = await seen(operator, 5)
    assert (described.rate, described.left_ms) == (20, 50_000)
    await operator.order(RolloutOrder.UNDO)
    described = await seen(operator, 2)
    assert (described.phase, described.rate, described.left_ms) == ("undoing", 20, 30_000)


@pytest.mark.parametrize("leap_ms", [-3_600_000, 0, 3_600_000])
async def test_a_clock_that_is_set_changes_no_rate(operator: Operator, leap_ms: int) -> None:
    await operator.start(20, into=2)
    await seen(operator, 4)
    described = await seen(operator, 1, leap_ms)
    assert (described.rate, described.left_ms) == (20, 50_000)


def lacking(**bytes_: int) -> RoomSeen:
    """Tell the bytes that moves in flight lack, and no room."""
    left = tuple((TopicPartition("orders", int(name[1:])), left) for name, left in bytes_.items())
    return RoomSeen((), left, BROKERS)


async def test_what_moves_in_flight_have_copied_is_not_left(operator: Operator) -> None:
    await operator.start(4, into=2)
    assert (await operator.describe()).bytes_left == 400
    await operator.bench.handle(lacking(p0=40, p1=130))
    assert (await operator.describe()).bytes_left == 340
    await operator.catch_up(0)
    assert (await operator.describe()).bytes_left == 300
    await operator.finish()
    assert (await operator.describe()).bytes_left == 0


async def test_what_an_earlier_controller_has_copied_is_no_progress_of_this_one(operator: Operator) -> None:
    await operator.start(4, into=2)
    await operator.fail_over()
    await operator.bench.handle(lacking(p0=40))
    rollout = operator.bench.context.rollouts.by_name["monday"]
    rollout.time_left.add(rollout.ran + 10, rollout.left)
    assert (rollout.left, rollout.time_left.rate) == (340, 0)
    await operator.bench.handle(lacking(p0=20, p1=50))
    rollout.time_left.add(rollout.ran + 20, rollout.left)
    assert (rollout.left, rollout.time_left.rate) == (270, 1)


async def test_all_moves_that_wait_are_counted_not_only_those_looked_at(operator: Operator) -> None:
    await operator.start(20, into=3)
    full = "broker 3 receives 3 replicas, the most at once"
    assert (await operator.describe()).waits == ((full, 17),)
    await operator.catch_up(0)
    await operator.bench.handle(RolloutLook())
    assert (await operator.describe()).waits == ((full, 16),)
    await operator.bench.kill(5)
    await operator.bench.handle(RolloutLook())
    assert (await operator.describe()).waits == (("broker 5 died", 16),)
    await operator.order(RolloutOrder.PAUSE)
    assert (await operator.describe()).waits == ()


async def test_bytes_that_nobody_will_copy_are_no_progress(operator: Operator) -> None:
    await operator.start(4, into=2)
    rollout = operator.bench.context.rollouts.by_name["monday"]
    await operator.bench.move(TopicPartition("orders", 3), (5, 2))
    assert (await operator.states())[3].startswith("overridden")
    rollout.time_left.add(rollout.ran + 10, rollout.left)
    assert (rollout.left, rollout.time_left.rate) == (300, 0)
    await operator.finish()
    await operator.bench.kill(1)
    await operator.order(RolloutOrder.UNDO)
    rollout.time_left.add(rollout.ran + 10, rollout.left)
    assert (rollout.left, rollout.time_left.rate) == (0, 0)
