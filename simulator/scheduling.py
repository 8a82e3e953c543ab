"""Trio runs that a seed replays: virtual time, and tasks scheduled in an order that depends only on the seed.

Trio runs the tasks of one tick in arbitrary order. It has a switch for tests that sorts them by age and shuffles them
with its own generator. Both are private, as are the waiters in `wait_all_tasks_blocked`, the queue of tasks that can
run, and the run loop. Only this module, `bookkeeping`, `suspension` and `run_loop` touch them.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import trio
from trio import _timeouts
from trio._core import _run as _scheduler

from simulator.alarms import VirtualClock
from simulator.bookkeeping import changing_deadline, reschedule
from simulator.run_loop import unrolled_run
from simulator.sleeping import sleep_until

T = TypeVar("T")

EPOCH_MS: Final = 1_700_000_000_000
"""The wall clock at virtual time 0, in milliseconds since 1970."""

_SWITCH: Final = "_ALLOW_DETERMINISTIC_SCHEDULING"
_OURS: Final[tuple[tuple[object, str, object], ...]] = (
    (_scheduler, "unrolled_run", unrolled_run),
    (_scheduler.Runner, "reschedule", reschedule),
    (_scheduler.CancelScope, "_might_change_registered_deadline", changing_deadline),
    (_timeouts, "sleep_until", sleep_until),
)
"""The substitutes for parts of trio. Each part is named by its owner and its name."""

KNOWN_TRIO: Final = ("0.35.",)
"""The versions of trio whose internals we know. With any other, trio's own are used, which costs more time."""


@contextmanager
def deterministic_scheduling(seed: int) -> Iterator[None]:
    """Make the order of tasks in this thread's trio run depend only on the seed, within the block."""
    before = getattr(_scheduler, _SWITCH), _scheduler._r.getstate()  # noqa: SLF001  there is no public api
    setattr(_scheduler, _SWITCH, True)
    _scheduler._r.seed(seed)  # noqa: SLF001
    try:
        yield
    finally:
        setattr(_scheduler, _SWITCH, before[0])
        _scheduler._r.setstate(before[1])  # noqa: SLF001


def run(main: Callable[[], Awaitable[T]], *, seed: int) -> T:
    """Run an async function in a trio run of its own, on virtual time from 0, replayable from the seed.

    Ctrl-C stops it while `main` waits, so that no half-opened cancel scope is mistaken for a fault of the simulation.
    """
    with deterministic_scheduling(seed), _short_turns():
        return trio.run(main, clock=VirtualClock(_is_someone_waiting), restrict_keyboard_interrupt_to_checkpoints=True)


@contextmanager
def _short_turns() -> Iterator[None]:
    """Put our run loop, bookkeeping and sleep into trio's place within the block, if we know this trio."""
    if not trio.__version__.startswith(KNOWN_TRIO):
        yield
        return
    before = [getattr(owner, name) for owner, name, _ in _OURS]
    for owner, name, ours in _OURS:
        setattr(owner, name, ours)
    try:
        yield
    finally:
        for (owner, name, _), trios in zip(_OURS, before, strict=True):
            setattr(owner, name, trios)


def _is_someone_waiting() -> bool:
    """Return whether a task is in `wait_all_tasks_blocked`: then virtual time must stand still."""
    return bool(_scheduler.GLOBAL_RUN_CONTEXT.runner.waiting_for_idle)


def generator(seed: int, name: str) -> random.Random:
    """Return a generator for one part of a simulation, so that parts do not change each other's draws."""
    return random.Random(f"{seed}/{name}")


def wall_clock_ms(skew_ms: int = 0) -> int:
    """Return the time on the clock of a host with this skew, in milliseconds since 1970."""
    return EPOCH_MS + round(trio.current_time() * 1000) + skew_ms
