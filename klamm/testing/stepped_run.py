"""A trio run on virtual time that advances only on demand.

It is a guest run whose host is the caller of `tick`: code without async, and other event loops, can take part in a
simulation, whose course depends only on the order of their calls.
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
    """A call of an async function in the run."""

    _work: Callable[[], Awaitable[T]]
    is_done: bool = field(default=False, init=False)
    _scope: trio.CancelScope = field(factory=trio.CancelScope, init=False)
    _returned: list[T] = field(factory=list, init=False)
    _raised: BaseException | None = field(default=None, init=False)

    async def run(self) -> None:
        """Make the call."""
        try:
            with self._scope:
                self._returned = [await self._work()]
        except BaseException as error:  # noqa: BLE001  raised to the caller of `result`
            self._raised = error
        self.is_done = True

    def cancel(self) -> None:
        """Cancel the call, which ends in a later tick."""
        self._scope.cancel()

    def result(self) -> T:
        """Return the call's result, or raise its exception; RuntimeError if it was cancelled or is not done."""
        if self._raised is not None:
            raise self._raised
        if not self._returned:
            raise RuntimeError("it was cancelled" if self.is_done else "it is not done")
        return self._returned[0]


@define(eq=False)
class SteppedRun:
    """The run. A thread can have only one, and no other trio run at the same time."""

    _ticks: deque[Callable[[], object]] = field(factory=deque, init=False)
    _nursery: trio.Nursery | None = field(default=None, init=False)
    _is_over: bool = field(default=False, init=False)

    @classmethod
    def start(cls) -> SteppedRun:
        """Start a run, at virtual time 0."""
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
        """Run each runnable task once; if there is none, let virtual time pass until there is one."""
        self._ticks.popleft()()

    def begin(self, work: Callable[[], Awaitable[T]]) -> Job[T]:
        """Start a call, which runs in later ticks."""
        assert self._nursery is not None, "the run was started"
        job = Job(work)
        self._nursery.start_soon(job.run)
        return job

    def finish(self, job: Job[T]) -> T:
        """Advance until a job is done, and return its result or raise its exception."""
        while not job.is_done:
            self.tick()
        return job.result()

    def close(self) -> None:
        """Cancel all jobs, and end the run."""
        assert self._nursery is not None, "the run was started"
        self._nursery.cancel_scope.cancel()
        while not self._is_over:
            self.tick()

    async def _main(self) -> None:
        async with trio.open_nursery() as self._nursery:
            await trio.sleep_forever()

    def _end(self) -> None:
        self._is_over = True
