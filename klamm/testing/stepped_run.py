"""A trio run on virtual time that stands still unless somebody lets it go on.

It is a guest run whose host is whoever calls `tick`: so code without async, and other event loops, can take part in a
simulation, and what happens depends on nothing but the order of their calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio
from attrs import define, field
from trio.testing import MockClock

T = TypeVar("T")


@define(eq=False)
class Job(Generic[T]):
    """Something that is done in the run."""

    _work: Callable[[], Awaitable[T]]
    is_done: bool = field(default=False, init=False)
    _scope: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    _returned: list[T] = field(factory=list, init=False)
    _raised: BaseException | None = field(default=None, init=False)

    async def run(self) -> None:
        """Do it."""
        try:
            with self._scope:
                self._returned = [await self._work()]
        except BaseException as error:  # noqa: BLE001  it is for who asks for the result
            self._raised = error
        self.is_done = True

    def cancel(self) -> None:
        """Let it end soon."""
        self._scope.cancel()

    def result(self) -> T:
        """Return what it returned, or raise what it raised; RuntimeError if it was cancelled or is not done."""
        if self._raised is not None:
            raise self._raised
        if not self._returned:
            raise RuntimeError("it was cancelled" if self.is_done else "it is not done")
        return self._returned[0]


@define(eq=False)
class SteppedRun:
    """The run. There can be one in a thread, and no other trio run beside it."""

    _ticks: deque[Callable[[], object]] = field(factory=deque, init=False)
    _nursery: trio.Nursery | None = field(default=None, init=False)
    _is_over: bool = field(default=False, init=False)

    @classmethod
    def start(cls) -> SteppedRun:
        """Start it, at the virtual time 0."""
        run = cls()
        trio.lowlevel.start_guest_run(
            run._main,
            run_sync_soon_threadsafe=run._ticks.append,
            done_callback=lambda _: run._end(),
            host_uses_signal_set_wakeup_fd=True,
            clock=MockClock(autojump_threshold=0),
        )
        while run._nursery is None:
            run.tick()
        return run

    def tick(self) -> None:
        """Let each task that can go on do so once; if none can, let time pass until one can."""
        self._ticks.popleft()()

    def begin(self, work: Callable[[], Awaitable[T]]) -> Job[T]:
        """Begin to do something, in the ticks to come."""
        assert self._nursery is not None, "the run was started"
        job = Job(work)
        self._nursery.start_soon(job.run)
        return job

    def finish(self, job: Job[T]) -> T:
        """Go on until a job is done, and return its result or raise it."""
        while not job.is_done:
            self.tick()
        return job.result()

    def close(self) -> None:
        """Cancel all that is under way, and end."""
        assert self._nursery is not None, "the run was started"
        self._nursery.cancel_scope.cancel()
        while not self._is_over:
            self.tick()

    async def _main(self) -> None:
        async with trio.open_nursery() as self._nursery:
            await trio.sleep_forever()

    def _end(self) -> None:
        self._is_over = True
