"""Alarms and the virtual clock that rings them."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.abc import Clock
from trio.testing import MockClock

from simulator.alarms import Alarms, VirtualClock, alarms_of_this_run

Rung = list[tuple[float, str]]


def _virtual_clock() -> Clock:
    return VirtualClock(lambda: False)


def _mock_clock() -> Clock:
    return MockClock(autojump_threshold=0)


@pytest.fixture(params=[_virtual_clock, _mock_clock])
def clock(request: pytest.FixtureRequest) -> Clock:
    made: Clock = request.param()
    return made


def _set(alarms: Alarms, rung: Rung, when: float, name: str) -> None:
    alarms.set(when, lambda: rung.append((trio.current_time(), name)))


async def test_alarms_ring_in_time_and_else_in_the_order_in_which_they_were_set(clock: Clock) -> None:  # noqa: ARG001
    alarms, rung = alarms_of_this_run(), Rung()
    for when, name in ((5, "late"), (2, "first"), (2, "second"), (1, "early")):
        _set(alarms, rung, when, name)
    await trio.sleep(3)
    assert rung == [(1, "early"), (2, "first"), (2, "second")]
    _set(alarms, rung, 4, "set later")
    await trio.sleep(3)
    assert rung[3:] == [(4, "set later"), (5, "late")]
    await trio.sleep(3)
    _set(alarms, rung, 10, "set when none was left")
    await trio.sleep(3)
    assert rung[5:] == [(10, "set when none was left")]


async def test_an_alarm_may_wake_a_task_and_set_another_alarm(clock: Clock) -> None:  # noqa: ARG001
    alarms, woken = alarms_of_this_run(), trio.Event()

    def first() -> None:
        alarms.set(trio.current_time() + 1, woken.set)

    alarms.set(3, first)
    await woken.wait()
    assert trio.current_time() == 4


def test_a_fresh_virtual_clock_shows_0_and_stands_still_while_tasks_can_run() -> None:
    async def main() -> list[float]:
        times = [trio.current_time()]
        with trio.move_on_after(5):
            for _ in range(1000):
                await trio.lowlevel.checkpoint()
            times.append(trio.current_time())
            await trio.sleep_forever()
        return [*times, trio.current_time()]

    assert trio.run(main, clock=_virtual_clock()) == [0, 0, 5]


def test_time_waits_for_those_who_wait_until_all_tasks_are_blocked() -> None:
    waiting = False

    async def main() -> float:
        nonlocal waiting
        with trio.move_on_after(5):
            waiting = True
            await trio.testing.wait_all_tasks_blocked()
            waiting = False
        return trio.current_time()

    assert trio.run(main, clock=VirtualClock(lambda: waiting)) == 0


def test_a_deadline_in_the_past_does_not_turn_time_back() -> None:
    async def main() -> list[float]:
        scope = trio.CancelScope()
        times = []

        async def sleeper() -> None:
            with scope:
                await trio.sleep_forever()
            times.append(trio.current_time())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(sleeper)
            await trio.sleep(5)
            scope.deadline = 1
        return times

    assert trio.run(main, clock=_virtual_clock()) == [5]
