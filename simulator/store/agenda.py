"""Scheduled calls in virtual time, in one order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from math import inf

import trio

from simulator.alarms import Alarms, alarms_of_this_run

Call = Callable[[], object]


class Agenda:
    """Calls ordered by due time, and by order of arrival where the time is equal.

    A call runs alone: calls that it adds run after it. A call that is due now is made before `at` or `after` returns,
    unless another call added it. All the others are made outside any task, while `run` runs.
    """

    def __init__(self) -> None:
        self.now: Callable[[], float] = trio.current_time
        self._calls: list[tuple[float, int, Call]] = []
        self._numbers = count()
        self._busy = False
        self._alarms: Alarms | None = None
        self._alarm_at = inf

    def after(self, seconds: float, call: Call) -> None:
        """Call `call` in `seconds` seconds; it must not raise."""
        self.at(self.now() + seconds, call)

    def at(self, time: float, call: Call) -> None:
        """Call `call` at a time of `trio.current_time()`."""
        heappush(self._calls, (time, next(self._numbers), call))
        if time <= self.now():
            self._do_what_is_due()
        else:
            self._set_alarm()

    async def run(self) -> None:
        """Make calls when they are due, until cancelled."""
        self._alarms, self._alarm_at = alarms_of_this_run(), inf
        self.now = self._alarms.now  # which does not look for the run each time
        self._do_what_is_due()
        self._set_alarm()
        try:
            await trio.sleep_forever()
        finally:
            self._alarms = None

    @contextmanager
    def together(self) -> Iterator[None]:
        """Postpone the calls that the block adds until it ends, as if the block were a call itself."""
        within, self._busy = self._busy, True
        try:
            yield
        finally:
            self._busy = within
        self._do_what_is_due()

    def _do_what_is_due(self) -> None:
        if self._busy:
            return
        self._busy = True
        try:
            while self._calls and self._calls[0][0] <= self.now():
                _, _, call = heappop(self._calls)
                call()
        finally:
            self._busy = False

    def _set_alarm(self) -> None:
        if self._alarms is not None and self._calls and self._calls[0][0] < self._alarm_at:
            self._alarm_at = self._calls[0][0]
            self._alarms.set(self._alarm_at, self._ring)

    def _ring(self) -> None:
        # An alarm that an earlier one has replaced comes too late.
        if self._alarms is not None and self._alarm_at <= self.now():
            self._alarm_at = inf
            self._do_what_is_due()
            self._set_alarm()
