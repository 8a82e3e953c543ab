"""Runs of trio that a seed replays: virtual time, and tasks scheduled in an order that depends on the seed alone.

Trio schedules the tasks of one tick in an order of its own choosing. It has a switch for tests that sorts them by age
and shuffles them with its own generator. Both are private, as is who waits in `wait_all_tasks_blocked`, and this is
the only module that touches them.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import trio
from trio._core import _run as _scheduler

from simulator.alarms import VirtualClock

T = TypeVar("T")

EPOCH_MS: Final = 1_700_000_000_000
"""The wall clock when virtual time is 0, in milliseconds since 1970."""

_SWITCH: Final = "_ALLOW_DETERMINISTIC_SCHEDULING"


@contextmanager
def deterministic_scheduling(seed: int) -> Iterator[None]:
    """Let the seed alone decide the order of tasks, in this thread's trio run, while the block lasts."""
    before = getattr(_scheduler, _SWITCH), _scheduler._r.getstate()  # noqa: SLF001  there is no public way
    setattr(_scheduler, _SWITCH, True)
    _scheduler._r.seed(seed)  # noqa: SLF001
    try:
        yield
    finally:
        setattr(_scheduler, _SWITCH, before[0])
        _scheduler._r.setstate(before[1])  # noqa: SLF001


def run(main: Callable[[], Awaitable[T]], *, seed: int) -> T:
    """Run an async function in a trio run of its own, on virtual time from 0, replayable from the seed.

    Ctrl-C ends it where `main` waits, so that no half-opened cancel scope is taken for a fault of what is simulated.
    """
    with deterministic_scheduling(seed):
        return trio.run(main, clock=VirtualClock(_is_someone_waiting), restrict_keyboard_interrupt_to_checkpoints=True)


def _is_someone_waiting() -> bool:
    """Whether a task is in `wait_all_tasks_blocked`, for which virtual time is to stand still."""
    return bool(_scheduler.GLOBAL_RUN_CONTEXT.runner.waiting_for_idle)


def generator(seed: int, name: str) -> random.Random:
    """Return a generator of its own for one part of a simulation, so that parts do not disturb each other."""
    return random.Random(f"{seed}/{name}")


def wall_clock_ms(skew_ms: int = 0) -> int:
    """Return what a host's clock shows whose skew is given, in milliseconds since 1970."""
    return EPOCH_MS + round(trio.current_time() * 1000) + skew_ms
