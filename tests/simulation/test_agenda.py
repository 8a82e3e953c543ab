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
