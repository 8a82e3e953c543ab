"""Calls at points in virtual time. A simulation sets very many, and trio's deadlines are too slow for it.

An alarm is set for one call and rings once. On a `VirtualClock` it costs a heap entry; a deadline of trio also costs a
cancel scope, an exception, and, on trio's own `MockClock`, two turns of the run loop.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import inf

import trio


class Alarms:
    """Pending calls by time and, where the time is equal, in the order in which they were set.

    `now` returns the time, as `trio.current_time` does, but it does not look for the run each time.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    @property
    def next(self) -> float:
        """Return when the next alarm rings; infinite if none is set."""
        return self._calls[0][0] if self._calls else inf

    def set(self, when: float, call: Callable[[], None]) -> None:
        """Schedule `call` for a time in the future. It is called outside any task, and must not raise."""
        heappush(self._calls, (when, next(self._numbers), call))

    def ring(self, now: float) -> None:
        """Make the calls that are due."""
        while self._calls and self._calls[0][0] <= now:
            heappop(self._calls)[2]()


class VirtualClock(trio.abc.Clock):
    """A clock that starts at 0, stands still while any task can run, and then jumps to the next deadline or alarm.

    `is_someone_waiting` returns whether a task is in `wait_all_tasks_blocked`: time waits for it.
    """

    def __init__(self, is_someone_waiting: Callable[[], bool]) -> None:
        self.alarms = Alarms(self.current_time)
        self._now = 0.0
        self._is_someone_waiting = is_someone_waiting

    def start_clock(self) -> None:
        """Do nothing: the clock stands still."""

    def current_time(self) -> float:
        """Return the virtual time, in seconds."""
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Jump to the deadline: trio asks when no task can run, and then does not have to sleep."""
        alarm = self.alarms.next
        then = min(deadline, alarm)
        if then == inf or self._is_someone_waiting():
            return inf
        self._now = max(self._now, then)
        if alarm <= self._now:
            self.alarms.ring(self._now)
        return 0


class _AlarmsOfTask(Alarms):
    """Alarms on any other clock: a task makes the calls."""

    def __init__(self) -> None:
        super().__init__(trio.current_time)
        self._sleep: trio.CancelScope | None = None

    def set(self, when: float, call: Callable[[], None]) -> None:
        super().set(when, call)
        if self._sleep is None:
            self._sleep = trio.CancelScope(deadline=when)
            trio.lowlevel.spawn_system_task(self._run)
        elif when < self._sleep.deadline:
            self._sleep.deadline = when

    async def _run(self) -> None:
        while self._sleep is not None:
            with self._sleep:
                await trio.sleep_forever()
            self.ring(trio.current_time())
            self._sleep = trio.CancelScope(deadline=self.next)


def alarms_of_this_run() -> Alarms:
    """Return the alarms of the current trio run."""
    clock = trio.lowlevel.current_clock()
    return clock.alarms if isinstance(clock, VirtualClock) else _AlarmsOfTask()
