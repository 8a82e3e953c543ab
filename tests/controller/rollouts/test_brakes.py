"""Rollouts that are held up: by signals, by partitions under min ISR, and by a lack of room."""

from __future__ import annotations

import pytest

from controller.events import ReassignmentProgress, RolloutLook, RolloutsDue, RolloutSignalled, RoomSeen
from controller.model.facts import MinIsrRead
from controller.model.rounds import Step, apply
from controller.node.alarms import ASKED_SECONDS, alarms
from controller.observation.event_log import EventLog
from controller.progress.tracker import Moves
from tests.controller.rollouts.operator import Operator
from transport.messages import RolloutMove, RolloutOrder, RolloutSettings, StartRolloutRequest, StartRolloutResponse
from transport.metadata import TopicPartition


async def test_nothing_begins_until_the_operators_signal_says_yes(operator: Operator) -> None:
    await operator.start(3, go_url="http://monitoring/go")
    assert (await operator.describe()).why == "its signal has not been asked for yet"
    await operator.bench.handle(RolloutSignalled("monday", "http://monitoring/go answers 503"))
    assert ((await operator.describe()).why, operator.in_flight()) == ("http://monitoring/go answers 503", [])
    await operator.bench.handle(RolloutSignalled("monday", ""))
    assert operator.in_flight() == [0, 1, 2]


async def test_partitions_under_min_isr_hold_it_up(operator: Operator) -> None:
    tp = TopicPartition("orders", 19)
    await operator.bench.run(apply("settings", [Step(facts=(MinIsrRead("orders", 2),))]))
    await operator.bench.alter_isr(tp, 1)
    await operator.start(3)
    assert ((await operator.describe()).why, operator.in_flight()) == ("orders-19 is under min ISR", [])
    await operator.bench.alter_isr(tp, 1, 2)
    await operator.bench.handle(RolloutLook())
    assert operator.in_flight() == [0, 1, 2]


async def test_a_look_at_a_rollout_is_no_decision(operator: Operator) -> None:
    await operator.start(3)
    log = EventLog()
    operator.bench.runner.instrument = log
    for event in (RolloutLook(), room_of(1_000), RolloutsDue(), RolloutSignalled("monday", "busy")):
        log.started(event, 0)
        await operator.bench.handle(event)
        log.finished(event, 0)
    assert [decision.event for decision in log.decisions.latest()] == ["RolloutSignalled"]


def room_of(*directories: int) -> RoomSeen:
    """Tell the free bytes in the directories of broker 3."""
    return RoomSeen(((3, sum(directories), max(directories)),))


async def test_a_move_waits_until_its_broker_has_room(operator: Operator) -> None:
    await operator.start(6, into=2)
    await operator.bench.handle(room_of(350))
    await operator.catch_up(0)
    assert operator.in_flight() == [1, 2]
    await operator.catch_up(1)
    assert operator.in_flight() == [2]
    assert (await operator.describe()).waits == (("broker 3 has room for 50 bytes, and it needs 100", 3),)
    await operator.bench.handle(room_of(250))
    await operator.bench.handle(RolloutLook())
    assert operator.in_flight() == [2, 3]


async def test_a_move_waits_for_room_in_one_directory(operator: Operator) -> None:
    await operator.start(3, into=1)
    await operator.bench.handle(room_of(90, 90, 90))
    await operator.catch_up(0)
    assert operator.in_flight() == []
    assert (await operator.describe()).waits == (("broker 3 has room for 90 bytes, and it needs 100", 2),)
    await operator.bench.handle(room_of(90, 110, 90))
    await operator.bench.handle(RolloutLook())
    assert operator.in_flight() == [1]


async def test_brokers_are_asked_for_their_room_while_moves_wait_for_it(operator: Operator) -> None:
    await operator.start(2, into=1)
    await operator.bench.handle(room_of(50))
    await operator.catch_up(0)
    assert operator.in_flight() == []
    moves = await operator.bench.handle(ReassignmentProgress())
    assert isinstance(moves, Moves)
    assert not moves.partitions
    assert moves.asked == {3}
    assert ReassignmentProgress() in [event for _, event in alarms(operator.bench.context, RolloutLook())]
    await operator.bench.handle(room_of(100))
    await operator.bench.handle(RolloutLook())
    await operator.finish()
    assert ReassignmentProgress() not in [event for _, event in alarms(operator.bench.context, RolloutLook())]


ASKED = "broker 3 has been asked for the room on its disks"


@pytest.fixture
def silent(operator: Operator) -> Operator:
    """Return the operator of a cluster whose brokers do not answer by themselves."""
    operator.bench.do_brokers_answer = False
    return operator


async def asked(operator: Operator) -> set[int]:
    """Return the brokers that are asked for their room."""
    moves = await operator.bench.handle(ReassignmentProgress())
    assert isinstance(moves, Moves)
    return set(moves.asked)


async def test_no_move_begins_before_its_broker_has_told_its_room(silent: Operator) -> None:
    await silent.start(6, into=3)
    assert silent.in_flight() == []
    assert (await silent.describe()).waits == ((ASKED, 6),)
    assert await asked(silent) == {3}
    assert (ASKED_SECONDS, ReassignmentProgress()) in alarms(silent.bench.context, RolloutLook())
    await silent.bench.handle(room_of(250))
    assert silent.in_flight() == [0, 1]
    assert (await silent.describe()).waits == (("broker 3 has room for 50 bytes, and it needs 100", 4),)
    assert (1.0, ReassignmentProgress()) in alarms(silent.bench.context, RolloutLook())


async def test_a_broker_that_does_not_tell_its_room_holds_nothing_up(silent: Operator) -> None:
    await silent.start(6, into=3)
    await silent.bench.handle(RoomSeen((), untold=(3,)))
    assert silent.in_flight() == [0, 1, 2]
    await silent.catch_up(1)
    assert silent.in_flight() == [0, 2, 3]


async def test_all_brokers_that_receive_are_asked_at_once(silent: Operator) -> None:
    moves = [RolloutMove("orders", number, (1, *new), size=100) for number, new in enumerate(((3, 4), (5,), (2,)))]
    await silent.upload(*moves, *(RolloutMove("orders", number, (6, 2)) for number in (3, 4)))
    request = StartRolloutRequest("monday", "digest", 5, RolloutSettings(into=1))
    await silent.bench.ask(request, StartRolloutResponse)
    # The last ones, of unknown size, cannot be held against any room.
    assert await asked(silent) == {3, 4, 5}
    assert silent.in_flight() == [3]


async def test_the_next_controller_asks_for_room_again(silent: Operator) -> None:
    await silent.start(6, into=2)
    await silent.bench.handle(room_of(1_000))
    await silent.fail_over()
    await silent.catch_up(0)
    assert silent.in_flight() == [1]
    assert (await silent.describe()).waits == ((ASKED, 4),)
    assert await asked(silent) == {3}


async def test_the_way_back_and_the_next_rollout_ask_for_room_again(silent: Operator) -> None:
    await silent.start(2)
    await silent.start(2, name="tuesday", first=2)
    await silent.bench.handle(RoomSeen(((1, 1_000, 1_000), (3, 1_000, 1_000))))
    await silent.catch_up(0, 1)
    assert (silent.in_flight(), await asked(silent)) == ([], {3})
    await silent.order(RolloutOrder.ABORT, name="tuesday")
    await silent.order(RolloutOrder.UNDO)
    assert (silent.in_flight(), await asked(silent)) == ([], {1})
    await silent.bench.handle(RoomSeen(((1, 1_000, 1_000),)))
    assert silent.in_flight() == [0]


async def test_nobody_is_asked_for_a_rollout_that_is_paused_or_held(silent: Operator) -> None:
    await silent.start(4, go_url="http://monitoring/go")
    assert await asked(silent) == set()
    await silent.bench.handle(RolloutSignalled("monday", ""))
    assert await asked(silent) == {3}
    await silent.order(RolloutOrder.PAUSE)
    assert await asked(silent) == set()
    assert ReassignmentProgress() not in [event for _, event in alarms(silent.bench.context, RolloutLook())]


async def test_a_broker_that_is_not_polled_any_more_is_asked_again(silent: Operator) -> None:
    await silent.start(4, into=1)
    await silent.bench.handle(room_of(1_000))
    await silent.bench.handle(RoomSeen(()))
    await silent.catch_up(0)
    assert (silent.in_flight(), await asked(silent)) == ([], {3})


async def test_a_rollout_that_ignores_room_asks_nobody(silent: Operator) -> None:
    await silent.start(4, into=2, ignore_room=True)
    assert silent.in_flight() == [0, 1]
    assert await asked(silent) == set()
