"""Orders of operators to rollouts, those that are refused included."""

from __future__ import annotations

from typing import Any

import pytest

from controller.events import RolloutLook
from controller.model.facts import MinIsrRead
from controller.model.rounds import Step, apply
from tests.controller.rollouts.operator import Operator
from transport.errors import ApiError
from transport.messages import ChangeRolloutRequest, ChangeRolloutResponse, RolloutOrder
from transport.metadata import TopicPartition


async def test_it_pauses_and_resumes(operator: Operator) -> None:
    await operator.start(20, into=3)
    described = await operator.order(RolloutOrder.PAUSE)
    assert described is not None
    assert (described.holds, described.why) == (("operator",), "paused by operator")
    await operator.catch_up()
    assert operator.in_flight() == []
    await operator.fail_over()
    assert operator.in_flight() == []
    await operator.order(RolloutOrder.RESUME)
    assert operator.in_flight() == [3, 4, 5]


async def test_a_rollout_that_waits_can_be_aborted(operator: Operator) -> None:
    await operator.start(10, name="monday")
    await operator.start(10, name="tuesday", first=10)
    await operator.order(RolloutOrder.ABORT, name="tuesday")
    assert (await operator.describe("tuesday")).phase == "aborted"
    assert operator.in_flight() == [0, 1, 2, 3, 4]


async def test_an_abort_cancels_what_it_can_behind_any_number_that_cannot_be(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.handlers.rollout_moves.BEGUN_AT_ONCE", 2)
    await operator.start(6, into=6, out_of=6, leaders=6)
    await operator.bench.handle(RolloutLook())
    assert operator.in_flight() == [0, 1, 2, 3, 4, 5]
    for number in (0, 1):
        await operator.bench.alter_isr(TopicPartition("orders", number), 1, 3)
    await operator.bench.kill(1)
    await operator.order(RolloutOrder.ABORT)
    assert operator.in_flight() == [0, 1], "only the new replica of these could lead"
    await operator.bench.revive(1)
    for number in (0, 1):
        await operator.bench.alter_isr(TopicPartition("orders", number), 3, 1)
    await operator.bench.handle(RolloutLook())
    assert (operator.in_flight(), (await operator.describe()).phase) == ([], "aborted")


async def test_it_goes_on_without_the_brokers_that_are_dead_when_the_operator_says_so(operator: Operator) -> None:
    await operator.start(20, into=3)
    await operator.bench.kill(4)
    await operator.bench.handle(RolloutLook())
    assert (await operator.describe()).why == "broker 4 died"
    request = ChangeRolloutRequest("monday", RolloutOrder.RESUME, without_dead=True)
    await operator.bench.ask(request, ChangeRolloutResponse)
    await operator.catch_up(0)
    assert operator.in_flight() == [1, 2, 3]
    await operator.bench.kill(5)
    await operator.bench.handle(RolloutLook())
    assert (await operator.describe()).why == "broker 5 died"


async def test_it_goes_on_under_min_isr_when_the_operator_says_so(operator: Operator) -> None:
    await operator.bench.run(apply("settings", [Step(facts=(MinIsrRead("orders", 2),))]))
    await operator.bench.alter_isr(TopicPartition("orders", 19), 1)
    await operator.start(3)
    await operator.order(RolloutOrder.RESUME)
    assert operator.in_flight() == []
    await operator.order(RolloutOrder.RESUME, ignore_min_isr=True)
    assert operator.in_flight() == [0, 1, 2]
    await operator.fail_over()
    await operator.order(RolloutOrder.SET, into=4)
    await operator.finish()
    assert (await operator.describe()).phase == "done"


async def test_an_order_against_the_phase_is_refused_and_changes_nothing(operator: Operator) -> None:
    await operator.start(4, into=2)
    await operator.finish()
    await operator.order(RolloutOrder.UNDO)
    with pytest.raises(ApiError, match="rollout monday is undoing: it cannot abort"):
        await operator.order(RolloutOrder.ABORT, into=1)
    assert (await operator.describe()).settings.into == 2


async def test_an_order_may_be_given_again(operator: Operator) -> None:
    await operator.start(4, into=2)
    await operator.finish()
    for _ in range(2):
        await operator.order(RolloutOrder.UNDO)
        assert (await operator.describe()).phase == "undoing"


async def test_an_abort_does_not_stop_an_undo_without_a_word(operator: Operator) -> None:
    await operator.start(3)
    await operator.bench.alter_isr(TopicPartition("orders", 0), 1, 3)
    await operator.bench.kill(1, 2)
    await operator.order(RolloutOrder.UNDO)
    assert (await operator.describe()).phase == "aborting to undo"
    with pytest.raises(ApiError, match="rollout monday is aborting to undo: it cannot abort"):
        await operator.order(RolloutOrder.ABORT)


@pytest.mark.parametrize("setting", ["into", "out_of", "leaders", "in_all", "bytes", "throttle"])
async def test_a_limit_that_lets_nothing_begin_is_refused(operator: Operator, setting: str) -> None:
    none: dict[str, Any] = {setting: 0}
    with pytest.raises(ApiError, match="must be greater than 0"):
        await operator.start(4, **none)
    assert operator.bench.context.rollouts.by_name == {}
    await operator.start(4)
    with pytest.raises(ApiError, match="must be greater than 0"):
        await operator.order(RolloutOrder.SET, **none)


async def test_limits_change_while_it_runs(operator: Operator) -> None:
    await operator.start(20, into=3)
    await operator.order(RolloutOrder.SET, into=5)
    assert operator.in_flight() == [0, 1, 2, 3, 4]
