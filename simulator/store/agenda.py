"""Scheduled calls in virtual time, in one order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count

import trio

Call = Callable[[], object]


class Agenda:
    """Calls ordered by due time, and by order of arrival where the time is equal.

    A call runs alone: calls that it adds run after it. A call that is due now is made before `at` or `after` returns,
    unless another call added it; `run` makes all the others.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[float, int, Call]] = []
        self._numbers = count()
        self._busy = False
        self._sooner = trio.Event()
        self._sleeps_until = math.inf

    def after(self, seconds: float, call: Call) -> None:
        """Call `call` in `seconds` seconds; it may not block, and an exception that it raises ends `run`."""
        self.at(trio.current_time() + seconds, call)

    def at(self, time: float, call: Call) -> None:
        """Call `call` at a time of `trio.current_time()`."""
        heappush(self._calls, (time, next(self._numbers), call))
        if time <= trio.current_time():
            self._do_what_is_due()
        elif time < self._sleeps_until:  # not "if it is first": the first call may be about to be made without `run`
            self._sooner.set()

    async def run(self) -> None:
        """Make calls when they are due, forever."""
        while True:
            self._do_what_is_due()
            self._sooner = trio.Event()
            self._sleeps_until = self._calls[0][0] if self._calls else math.inf
            with trio.move_on_at(self._sleeps_until):
                await self._sooner.wait()

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
            while self._calls and self._calls[0][0] <= trio.current_time():
                _, _, call = heappop(self._calls)
                call()
        finally:
            self._busy = False
