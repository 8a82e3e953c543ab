"""The bounds of what is kept about moves, and moves in a controller."""

from __future__ import annotations

import pytest

from controller.events import BrokerChange, ReassignmentProgress
from controller.model.rate_window import RateWindow
from controller.node import alarms
from controller.progress.tracker import MovingPartition, moves_of
from tests.controller.conftest import TP, Bench
from tests.controller.progress.moving import copying
from transport.messages import UNKNOWN
from transport.metadata import TopicPartition


def test_nothing_is_kept_of_what_no_longer_moves() -> None:
    room = copying(1000, 500)
    room.told(4, 10)
    room.progress.silent(4)
    room.partitions.clear()
    room.live.clear()
    room.look()
    progress = room.progress
    kept = progress.moves, progress._logs, progress._began, progress._setbacks, progress._flows, progress._silent  # noqa: SLF001
    assert [len(each) for each in kept] == [0] * 6
    room.told(4, 10)
    assert room.progress.sizes(TP, 4) == (UNKNOWN, UNKNOWN)


def test_nothing_is_kept_of_replicas_that_show_no_progress_any_more() -> None:
    room = copying(1000, 500)
    assert min(room.progress.sizes(TP, 1)) > UNKNOWN
    room.move(4, leader=4, isr=(1, 4))
    assert room.progress.sizes(TP, 1) == (UNKNOWN, UNKNOWN)
    assert min(room.progress.sizes(TP, 4)) > UNKNOWN


def test_a_window_keeps_a_handful_however_often_somebody_looks() -> None:
    window = RateWindow()
    for tick in range(10_000):
        window.add(tick / 100, tick)
    assert window.rate() == pytest.approx(100)
    assert len(window._marks) < 10  # noqa: SLF001


def test_a_window_that_somebody_looks_at_rarely_still_tells() -> None:
    window = RateWindow()
    for tick in range(5):
        window.add(tick * 100.0, tick * 1000)
    assert window.rate() == 10


async def test_the_controller_says_what_moves(bench: Bench) -> None:
    await bench.start((1, 2), (3, 4), brokers=(1, 2, 3, 4))
    assert moves_of(bench.context).partitions == ()
    await bench.move(TP, (3, 4))
    moves = moves_of(bench.context)
    topic_id = bench.context.topic_id("orders")
    assert moves.partitions == (MovingPartition(TP, topic_id, 1, (1, 2), (3, 4)),)
    assert [each.id for each in moves.brokers] == [1, 2, 3, 4]
    assert moves.partitions[0].measured == (1, 3, 4)


async def test_a_look_at_what_moves_is_due_while_something_does(bench: Bench) -> None:
    await bench.start((1, 2), (3, 4), brokers=(1, 2, 3, 4))
    due = ReassignmentProgress()

    def later() -> list[float]:
        event = alarms.alarms(bench.context, BrokerChange())
        assert [each for each in alarms.first_alarms(bench.context) if each[1] == due] == event
        return [seconds for seconds, each in event if each == due]

    assert later() == []
    await bench.move(TP, (3, 4))
    assert later() == [1.0]
    assert await bench.handle(due) == moves_of(bench.context)
    tps = [TopicPartition("orders", number) for number in range(10_000)]
    identity = bench.context.reassigning[TP]
    bench.context.reassigning.update(dict.fromkeys(tps, identity))
    assert later() == [5.0]
