"""What is to happen at which virtual time, in one order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count

import trio

Call = Callable[[], object]


class Agenda:
    """Calls by the time they are due, and of those due at once first come, first served.

    A call runs alone: what it adds comes after it. What is due now is done before `at` and `after` return, unless they
    are called by a call; the rest takes `run`.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[float, int, Call]] = []
        self._numbers = count()
        self._busy = False
        self._sooner = trio.Event()
        self._sleeps_until = math.inf

    def after(self, seconds: float, call: Call) -> None:
        """Call `call` in so many seconds; it may not block, and what it raises ends `run`."""
        self.at(trio.current_time() + seconds, call)

    def at(self, time: float, call: Call) -> None:
        """Call `call` at a time of `trio.current_time()`."""
        heappush(self._calls, (time, next(self._numbers), call))
        if time <= trio.current_time():
            self._do_what_is_due()
        elif time < self._sleeps_until:  # not: if it is the first, for the first may be about to be done without `run`
            self._sooner.set()

    async def run(self) -> None:
        """Do what is due, for ever."""
        while True:
            self._do_what_is_due()
            self._sooner = trio.Event()
            self._sleeps_until = self._calls[0][0] if self._calls else math.inf
            with trio.move_on_at(self._sleeps_until):
                await self._sooner.wait()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let what the block adds be done after it, as if it were a call itself."""
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
