"""Scheduled calls are made at their time, whoever adds them and when."""

from __future__ import annotations

from functools import partial

import pytest
import trio

from simulator.store.agenda import Agenda

pytestmark = pytest.mark.usefixtures("autojump_clock")


async def test_calls_come_in_the_order_of_their_times(nursery: trio.Nursery) -> None:
    agenda = Agenda()
    nursery.start_soon(agenda.run)
    seen: list[tuple[str, float]] = []

    def see(name: str) -> None:
        seen.append((name, trio.current_time()))

    for name, seconds in (("late", 5), ("soon", 1), ("now", 0), ("as soon", 1)):
        agenda.after(seconds, partial(see, name))
    assert seen == [("now", 0)]
    await trio.sleep(10)
    assert seen == [("now", 0), ("soon", 1), ("as soon", 1), ("late", 5)]


async def test_what_is_added_beside_something_that_is_due_is_not_forgotten(nursery: trio.Nursery) -> None:
    agenda = Agenda()
    nursery.start_soon(agenda.run)
    seen: list[float] = []
    agenda.after(100, lambda: None)
    await trio.sleep(1)
    with agenda.together():
        agenda.after(0, lambda: None)
        agenda.after(2, lambda: seen.append(trio.current_time()))
    await trio.sleep(10)
    assert seen == [3]


async def test_nothing_is_called_after_the_end_of_run_until_it_runs_again(nursery: trio.Nursery) -> None:
    agenda, seen = Agenda(), list[float]()
    agenda.after(2, lambda: seen.append(trio.current_time()))
    with trio.move_on_after(1):
        await agenda.run()
    await trio.sleep(4)
    assert not seen
    nursery.start_soon(agenda.run)
    await trio.sleep(1)
    agenda.after(1, lambda: seen.append(trio.current_time()))
    await trio.sleep(5)
    assert seen == [5, 7]


async def test_a_call_that_is_put_before_the_next_one_is_made_in_time(nursery: trio.Nursery) -> None:
    agenda, seen = Agenda(), list[float]()
    nursery.start_soon(agenda.run)
    await trio.sleep(1)
    for seconds in (8, 2, 5):
        agenda.after(seconds, lambda: seen.append(trio.current_time()))
    await trio.sleep(20)
    assert seen == [3, 6, 9]
