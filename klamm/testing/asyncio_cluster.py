"""A simulated cluster for asyncio programs.

The cluster runs in trio, and only while the program awaits one of its methods: in between, virtual time stands still,
however long the program takes. `asyncio.sleep` is real time, `sleep` here is virtual.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

import trio
from attrs import define

from klamm.testing.stepped_cluster import SteppedCluster
from simulator.cluster import SimulatedCluster

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    method: Callable[Concatenate[SimulatedCluster, P], Awaitable[T]],
) -> Callable[Concatenate[AsyncioCluster, P], Coroutine[Any, Any, T]]:
    async def call(asyncio_cluster: AsyncioCluster, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio_cluster.call(method, asyncio_cluster.cluster, *args, **kwargs)

    update_wrapper(call, method)
    return call


def _at_once(
    method: Callable[Concatenate[SimulatedCluster, P], T],
) -> Callable[Concatenate[AsyncioCluster, P], T]:
    def call(asyncio_cluster: AsyncioCluster, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return method(asyncio_cluster.cluster, *args, **kwargs)

    update_wrapper(call, method)
    return call


@define(eq=False)
class AsyncioCluster:
    """The methods of `SimulatedCluster`, with asyncio's `await`. Open one with `open_asyncio_cluster`."""

    _stepped: SteppedCluster

    @property
    def cluster(self) -> SimulatedCluster:
        """The cluster itself, for its sync methods."""
        return self._stepped.cluster

    @property
    def active_controller(self) -> int | None:
        """The controller in `/controller`, alive or not; None if there is none."""
        return self.cluster.active_controller

    async def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call any async function of trio code, such as a method of `cluster.admin`, and return its result.

        Raises its exceptions, and Violation as soon as an invariant does not hold.
        """
        job = self._stepped.begin(function, *args, **kwargs)
        try:
            while not self._stepped.advance(job):  # noqa: ASYNC110  this loop is what advances the simulation
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self._stepped.abandon(job)
            raise
        return job.result()

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        await self.call(trio.sleep, seconds)

    create_topic = _awaited(SimulatedCluster.create_topic)
    reassign = _awaited(SimulatedCluster.reassign)
    cancel = _awaited(SimulatedCluster.cancel)
    produce = _awaited(SimulatedCluster.produce)
    consume = _awaited(SimulatedCluster.consume)
    dump_state = _awaited(SimulatedCluster.dump_state)
    ask = _awaited(SimulatedCluster.ask)
    stop = _awaited(SimulatedCluster.stop)
    until = _awaited(SimulatedCluster.until)
    until_moved = _awaited(SimulatedCluster.until_moved)
    settle = _awaited(SimulatedCluster.settle)

    partition = _at_once(SimulatedCluster.partition)
    metadata = _at_once(SimulatedCluster.metadata)
    proposed_isrs = _at_once(SimulatedCluster.proposed_isrs)
    crash = _at_once(SimulatedCluster.crash)
    restart = _at_once(SimulatedCluster.restart)
    pause = _at_once(SimulatedCluster.pause)
    wake = _at_once(SimulatedCluster.wake)
    expire = _at_once(SimulatedCluster.expire)
    disconnect = _at_once(SimulatedCluster.disconnect)
    reconnect = _at_once(SimulatedCluster.reconnect)
    isolate = _at_once(SimulatedCluster.isolate)
    heal = _at_once(SimulatedCluster.heal)
    crash_at = _at_once(SimulatedCluster.crash_at)


@asynccontextmanager
async def open_asyncio_cluster(*, seed: int = 0, **settings: Any) -> AsyncIterator[AsyncioCluster]:
    """Run a cluster, in service from the start to the end of the block. See `open_cluster`."""
    with SteppedCluster.open(seed=seed, **settings) as stepped:
        yield AsyncioCluster(stepped)
