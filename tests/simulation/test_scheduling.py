"""Trio's private switches still work as the simulator needs: the order of tasks depends only on the seed."""

from __future__ import annotations

import os
import subprocess
import sys

import trio
import trio.testing
from trio import _timeouts as timeouts
from trio._core import _run as scheduler

from simulator.scheduling import deterministic_scheduling, run
from simulator.sleeping import sleep_until

PROGRAM = """
from tests.simulation.test_scheduling import order_of_tasks
print(order_of_tasks({seed}))
"""


def order_of_tasks(seed: int) -> list[int]:
    """Race tasks whose order only trio decides: they wake together, from events, locks and deadlines."""
    order: list[int] = []

    async def racer(number: int, gun: trio.Event, lock: trio.Lock) -> None:
        await gun.wait()
        async with lock:
            order.append(number)
        for _ in range(3):
            await trio.lowlevel.checkpoint()
            order.append(number)
        await trio.sleep_until(5)
        order.append(number)

    async def main() -> None:
        gun, lock = trio.Event(), trio.Lock()
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(racer, number, gun, lock)
            await trio.sleep(1)
            gun.set()

    run(main, seed=seed)
    return order


def test_the_same_seed_gives_the_same_order_in_another_process() -> None:
    def elsewhere(hash_seed: str) -> str:
        command = [sys.executable, "-c", PROGRAM.format(seed=7)]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()

    assert elsewhere("1") == elsewhere("2") == str(order_of_tasks(7))


def test_other_seeds_give_other_orders() -> None:
    assert len({tuple(order_of_tasks(seed)) for seed in range(20)}) == 20


def test_time_is_virtual_and_begins_at_0() -> None:
    async def main() -> tuple[float, float]:
        before = trio.current_time()
        await trio.sleep(80_000)
        return before, trio.current_time()

    assert run(main, seed=0) == (0, 80_000)


def test_time_waits_for_those_who_wait_until_all_tasks_are_blocked() -> None:
    async def main() -> float:
        with trio.move_on_after(5):
            await trio.testing.wait_all_tasks_blocked()
        return trio.current_time()

    assert run(main, seed=0) == 0


def test_a_sleep_notices_a_cancellation_in_the_turn_in_which_it_ends() -> None:
    went_on: list[float] = []

    async def main() -> None:
        with trio.move_on_at(5):
            await trio.sleep(5)
            went_on.append(trio.current_time())

    run(main, seed=0)
    assert not went_on


def test_a_sleep_is_an_alarm_within_a_run_only() -> None:
    async def main() -> object:
        return timeouts.sleep_until

    assert run(main, seed=0) is sleep_until
    assert timeouts.sleep_until is not sleep_until


def test_trio_is_left_as_it_was() -> None:
    def state() -> object:
        return scheduler._ALLOW_DETERMINISTIC_SCHEDULING, scheduler._r.getstate()  # noqa: SLF001  the subject of this test

    before = state()
    with deterministic_scheduling(3):
        assert state() != before
    assert state() == before
