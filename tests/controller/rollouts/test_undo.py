"""Undo of rollouts, and moves of their partitions that others have made."""

from __future__ import annotations

import pytest

from controller.events import RolloutLook
from controller.model.facts import MinIsrRead
from controller.model.rounds import Step, apply
from tests.controller.rollouts.operator import ORIGIN, TARGET, Operator, settings
from transport.errors import ErrorCode
from transport.messages import RolloutMove, RolloutOrder, StartRolloutRequest, StartRolloutResponse
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import paths


async def test_undo_moves_back_what_was_moved_and_leaves_alone_what_was_moved_by_hand(operator: Operator) -> None:
    await operator.start(20, into=3)
    await operator.catch_up(0, 1)
    await operator.bench.move(TopicPartition("orders", 0), (5, 6))
    await operator.finish()
    await operator.order(RolloutOrder.UNDO)
    await operator.finish()
    described = await operator.describe()
    assert (described.phase, described.counts) == ("undone", (("overridden", 1), ("back", 19)))
    assignments = operator.bench.context.topics["orders"].znode.partitions
    assert [assignments[n].replicas for n in range(3)] == [(5, 6), ORIGIN, ORIGIN]


@pytest.mark.parametrize("is_over", [False, True])
async def test_undo_leaves_alone_what_was_moved_away_by_hand_and_back(operator: Operator, is_over: bool) -> None:
    tp = TopicPartition("orders", 0)
    await operator.start(20, into=3)
    await operator.catch_up(0)
    if is_over:
        await operator.finish()
    for replicas in ((5, 6), TARGET):
        await operator.bench.move(tp, replicas)
        await operator.catch_up(0)
    await operator.fail_over()
    await operator.order(RolloutOrder.UNDO)
    await operator.finish()
    assert (await operator.describe()).phase == "undone"
    assert (await operator.states())[0] == "overridden: an administrator has moved it"
    assert await operator.bench.read_assignment(tp) == ReplicaAssignment(TARGET)


async def test_a_finished_move_that_is_made_again_by_hand_during_a_failover_is_overridden(operator: Operator) -> None:
    await operator.start(20, into=3)
    await operator.catch_up(0)
    await operator.bench.request_moves({TopicPartition("orders", 0): (5, 6)})
    await operator.fail_over()
    assert (await operator.states())[0] == "overridden: an administrator has moved it"


async def test_moves_by_hand_of_partitions_that_are_not_in_the_plan_are_forgotten(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.handlers.rollout_overrides._LOOKED_THROUGH", 2)
    await operator.start(3)
    await operator.finish()
    for number, replicas in [(0, (5, 6)), (0, TARGET), *((number, (5, 6)) for number in range(5, 15))]:
        await operator.bench.move(TopicPartition("orders", number), replicas)
        await operator.catch_up(number)
    remembered = operator.bench.context.rollouts.by_name["monday"].by_hand
    assert (TopicPartition("orders", 0) in remembered, len(remembered) <= 2) == (True, True)
    await operator.fail_over()
    await operator.order(RolloutOrder.UNDO)
    await operator.finish()
    assert await operator.states() == {0: "overridden: an administrator has moved it", 1: "back", 2: "back"}


async def test_undo_leaves_what_would_go_back_to_a_dead_broker(operator: Operator) -> None:
    await operator.start(2)
    await operator.finish()
    await operator.bench.kill(1)
    await operator.order(RolloutOrder.UNDO)
    assert (await operator.describe()).phase == "undone"
    text = "done: broker 1 of [1, 2] not alive"
    assert await operator.states() == {0: text, 1: text}


async def test_a_move_back_to_a_broker_that_dies_is_cancelled_and_named(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.handlers.rollout_moves.BEGUN_AT_ONCE", 1)
    await operator.start(6, into=3, throttle=1_000)
    await operator.finish()
    await operator.order(RolloutOrder.UNDO)
    await operator.catch_up(1)
    assert operator.in_flight() == [0, 2]
    await operator.bench.kill(1)
    await operator.bench.handle(RolloutLook())
    text = "done: broker 1 of [1, 2] not alive"
    assert await operator.states() == {number: "back" if number == 1 else text for number in range(6)}
    assert (operator.in_flight(), (await operator.describe()).phase) == ([], "undone")
    assert await operator.bench.read_assignment(TopicPartition("orders", 0)) == ReplicaAssignment(TARGET)
    assert await settings(operator.bench, paths.topic_config("orders")) == {}
    await operator.bench.revive(1)
    await operator.order(RolloutOrder.UNDO)
    await operator.finish()
    assert set((await operator.states()).values()) == {"back"}


@pytest.mark.parametrize("moment", ["U1", "(U1)", "marks"])
async def test_a_controller_that_dies_while_it_cancels_moves_back_leaves_none_behind(
    operator: Operator, moment: str
) -> None:
    await operator.start(3)
    await operator.finish()
    await operator.order(RolloutOrder.UNDO)
    await operator.bench.crash(operator.bench.kill(1), after=moment)
    await operator.fail_over()
    await operator.bench.handle(RolloutLook())
    assert set((await operator.states()).values()) == {"done: broker 1 of [1, 2] not alive"}
    assert await operator.bench.read_assignment(TopicPartition("orders", 0)) == ReplicaAssignment(TARGET)


async def test_a_later_undo_takes_back_what_an_earlier_one_has_not_quite_cancelled(operator: Operator) -> None:
    tp = TopicPartition("orders", 0)
    await operator.upload(RolloutMove("orders", 0, (3, 4)))
    await operator.bench.ask(StartRolloutRequest("monday", "digest", 1), StartRolloutResponse)
    await operator.finish()
    await operator.bench.run(apply("settings", [Step(facts=(MinIsrRead("orders", 2),))]))
    await operator.order(RolloutOrder.UNDO)
    await operator.bench.alter_isr(tp, 3, 1)
    await operator.bench.kill(2)
    await operator.bench.handle(RolloutLook())
    assert await operator.states() == {0: "done: broker 2 of [1, 2] not alive"}
    assert operator.in_flight() == [0], "only when 4 has caught up, 1 may go"
    await operator.bench.revive(2)
    await operator.order(RolloutOrder.UNDO)
    await operator.finish()
    assert await operator.states() == {0: "back"}
    assert await operator.bench.read_assignment(tp) == ReplicaAssignment(ORIGIN)


async def test_an_undo_that_is_paused_cancels_nothing_while_a_broker_restarts(operator: Operator) -> None:
    await operator.start(3)
    await operator.finish()
    await operator.order(RolloutOrder.UNDO)
    await operator.order(RolloutOrder.PAUSE)
    await operator.bench.kill(1)
    await operator.bench.handle(RolloutLook())
    assert operator.in_flight() == [0]
    await operator.bench.revive(1)
    await operator.order(RolloutOrder.RESUME)
    await operator.finish()
    assert set((await operator.states()).values()) == {"back"}


async def test_a_move_by_hand_takes_its_partition_out_for_good(operator: Operator) -> None:
    await operator.start(20, into=3)
    for number in (0, 7):
        assert (await operator.bench.move(TopicPartition("orders", number), (5, 6))).error is ErrorCode.NONE
    await operator.bench.move(TopicPartition("orders", 7), None)
    await operator.fail_over()
    await operator.finish()
    states = await operator.states()
    assert {number: state for number, state in states.items() if state != "done"} == dict.fromkeys(
        (0, 7), "overridden: an administrator has moved it"
    )
    assignments = operator.bench.context.topics["orders"].znode.partitions
    assert [assignments[n].replicas for n in (0, 7)] == [(5, 6), ORIGIN]


async def test_what_others_have_moved_to_the_target_stays_when_the_rollout_is_undone(operator: Operator) -> None:
    await operator.start(10)
    await operator.start(1, name="tuesday", first=9)
    await operator.finish()
    text = "overridden: somebody else has moved it there"
    assert await operator.states("tuesday") == {9: text}
    await operator.order(RolloutOrder.UNDO, name="tuesday")
    await operator.finish()
    assert await operator.states("tuesday") == {9: text}
    assert operator.bench.context.assignment(TopicPartition("orders", 9)).replicas == TARGET
