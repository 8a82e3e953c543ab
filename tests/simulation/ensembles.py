"""Simulated ensembles for tests, and their commits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from inspect import Parameter, Signature, signature
from typing import TypeVar

import pytest
import trio
from attrs import define, field

from simulator.scheduling import generator, run, wall_clock_ms
from simulator.store.ensemble import SimulatedEnsemble
from simulator.store.session import SimulatedStore
from transport.store.protocol import Committed, MetadataStore, Op, StoreError

TIMEOUT = 6.0
LATENCY = 0.01
EARLIEST, LATEST = TIMEOUT * 2 / 3, TIMEOUT * 4 / 3
"""The earliest and the latest end of a silent session."""

MOMENT = 2.0
"""Longer than any message in transit, and than a reconnect."""

T = TypeVar("T")


@define
class World:
    """An ensemble, and its commits as (host, ops)."""

    seed: int = 0
    servers: int = 1
    ensemble: SimulatedEnsemble = field(init=False)
    commits: list[tuple[str, list[Op]]] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        rng = generator(self.seed, "ensemble")
        self.ensemble = SimulatedEnsemble(rng, wall_clock_ms, servers=self.servers, on_commit=self.committed)
        self.ensemble.default_latency = LATENCY

    def committed(self, host: str, session_id: int, ops: Sequence[Op], committed: Committed) -> None:
        assert session_id or host == "admin"
        assert committed.zxid == self.ensemble.tree.zxid
        self.commits.append((host, list(ops)))

    def session(self, host: str, server: int | None = None) -> AbstractAsyncContextManager[SimulatedStore]:
        return self.ensemble.session(host, TIMEOUT, server)

    def data(self, path: str) -> bytes | None:
        """Return the durable data at a path, or None."""
        znode = self.ensemble.tree.read(path)
        return None if znode is None else znode.data


@asynccontextmanager
async def running(world: World) -> AsyncIterator[World]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.ensemble.run)
        yield world
        nursery.cancel_scope.cancel()


def replay(story: Callable[[World], Awaitable[T]], seed: int, servers: int = 1) -> T:
    """Run a story in an ensemble and a trio run of its own, both of which depend only on the seed."""
    told: list[T] = []

    async def main() -> None:
        async with running(World(seed, servers)) as world:
            told.append(await story(world))

    run(main, seed=seed)
    return told[0]


def on_ensemble(servers: int = 1, seeds: int = 3) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Make a test of a story with a `world`, run once for each seed; its other parameters become the test's."""

    def decorate(story: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        def test(seed: int, **others: object) -> None:
            replay(lambda world: story(world, **others), seed, servers)

        others = [parameter for name, parameter in signature(story).parameters.items() if name != "world"]
        seed = Parameter("seed", Parameter.POSITIONAL_OR_KEYWORD)
        test.__signature__ = Signature([seed, *others])  # type: ignore[attr-defined]
        test.__name__ = story.__name__
        decorated: Callable[..., None] = pytest.mark.parametrize("seed", range(seeds))(test)
        return decorated

    return decorate


async def outcome(request: Awaitable[object]) -> str:
    """Await a request, and return its outcome."""
    try:
        await request
    except StoreError as error:
        return type(error).__name__
    return "done"


async def note(request: Awaitable[object], into: list[str]) -> None:
    """Await a request, and append its outcome."""
    into.append(await outcome(request))


async def data(store: MetadataStore, path: str, *, watch: bool = False) -> bytes | None:
    """Read a znode's data through a store."""
    (znode,) = await store.read([path], watch=watch)
    return None if znode is None else znode.data
