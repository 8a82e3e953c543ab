"""Trio's sleep for a simulation: an alarm, which costs less than a deadline that ends with an exception."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from typing import Final

import trio

from simulator.alarms import alarms_of_this_run
from simulator.waiter import Waiter

_trios: Final[Callable[[float], Awaitable[None]]] = trio.sleep_until


async def sleep_until(deadline: float) -> None:
    """Sleep as `trio.sleep_until` does."""
    alarms = alarms_of_this_run()
    if not alarms.now() < deadline < inf:
        await _trios(deadline)
        return
    waiter = Waiter()
    alarms.set(deadline, waiter.wake)
    await waiter.wait()
    # With trio's deadlines, a cancellation in the turn in which the sleep ends would be noticed as well.
    await trio.lowlevel.checkpoint_if_cancelled()
