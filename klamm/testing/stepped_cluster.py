"""A simulated cluster for code without async: between two calls, virtual time stands still."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

import trio
from attrs import define, field

from klamm.testing.opening import open_cluster, tell_story
from klamm.testing.stepped_run import Job, SteppedRun
from simulator.cluster import SimulatedCluster
from simulator.trace import Trace

P = ParamSpec("P")
T = TypeVar("T")


@define(eq=False)
class SteppedCluster:
    """A cluster in a trio run of its own, which advances only within the methods here.

    Sync methods of `cluster` can be called at any time, async methods through `call`. Close the cluster after use, or
    use it in a `with` statement.
    """

    seed: int
    trace: Trace
    cluster: SimulatedCluster = field(init=False)
    _run: SteppedRun = field(factory=SteppedRun.start, init=False)
    _closing: trio.Event = field(factory=trio.Event, init=False)
    _life: Job[None] = field(init=False)

    @classmethod
    def open(cls, *, seed: int = 0, trace: Trace | None = None, **settings: Any) -> SteppedCluster:
        """Start a cluster, and return it when it is in service. See `open_cluster`."""
        stepped = cls(seed, trace or Trace())
        opened = trio.Event()
        stepped._life = stepped._run.begin(partial(stepped._live, opened, settings))
        try:
            stepped.call(opened.wait)
        except BaseException:
            stepped._run.close()
            raise
        return stepped

    def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call an async function in the run, and return its result or raise its exception.

        Raises Violation, which ends the cluster, as soon as an invariant does not hold.
        """
        job = self.begin(function, *args, **kwargs)
        while not self.advance(job):
            pass
        return job.result()

    def begin(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> Job[T]:
        """Start a call of an async function, which continues during later calls."""
        return self._run.begin(partial(function, *args, **kwargs))

    def advance(self, job: Job[Any]) -> bool:
        """Advance by one tick; return whether `job` is done. Raises Violation."""
        if self._life.is_done:
            self.abandon(job)
            self._life.result()
        if not job.is_done:
            self._run.tick()
        return job.is_done

    def abandon(self, job: Job[Any]) -> None:
        """Cancel a job and wait until it has ended, ignoring its outcome."""
        job.cancel()
        with suppress(BaseException):
            self._run.finish(job)

    def close(self) -> None:
        """End the cluster and the run. Raises Violation if there was one."""
        self._closing.set()
        try:
            self._run.finish(self._life)
        finally:
            self._run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        tell_story(error, self.seed, self.trace)
        with suppress(BaseException):
            self.close()

    async def _live(self, opened: trio.Event, settings: dict[str, Any]) -> None:
        async with open_cluster(seed=self.seed, trace=self.trace, **settings) as self.cluster:
            opened.set()
            await self._closing.wait()
