"""Znodes that are cached until they change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest
from attrs import define, field

from tests.kit.passing_store import PassingStore
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import Create, Delete, Set, Znode
from transport.store.watched import WatchedZnodes

Meddling = Callable[[], Awaitable[object]]


@define
class Counting(PassingStore):
    """Remembers what was read, and after the next read lets something happen."""

    read_paths: list[str] = field(factory=list)
    meddling: Meddling | None = None

    async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        self.read_paths += paths
        found = await super().read(paths, watch=watch)
        meddling, self.meddling = self.meddling, None
        if meddling is not None:
            await meddling()
        return found


@pytest.fixture
async def counting(memory: MemoryZooKeeper) -> AsyncIterator[Counting]:
    async with memory.session() as store:
        yield Counting(store)


@pytest.fixture
def watched(counting: Counting) -> WatchedZnodes:
    return WatchedZnodes(counting)


async def data(watched: WatchedZnodes, *paths: str) -> list[bytes | None]:
    return [None if znode is None else znode.data for znode in await watched.read(paths)]


async def test_a_znode_is_read_again_only_after_a_change(counting: Counting, watched: WatchedZnodes) -> None:
    with watched.watching():
        assert await data(watched, "/a", "/b") == [None, None]
        await counting.store.multi([Create("/a", b"1")])
        assert await data(watched, "/a", "/b") == [b"1", None]
        await counting.store.multi([Set("/a", b"2", -1)])
        assert await data(watched, "/b", "/a", "/a") == [None, b"2", b"2"]
        await counting.store.multi([Delete("/a")])
        assert await data(watched, "/a") == await data(watched, "/a") == [None]
    assert counting.read_paths == ["/a", "/b", "/a", "/a", "/a"]


async def test_a_change_while_it_is_read_is_not_lost(counting: Counting, watched: WatchedZnodes) -> None:
    counting.meddling = lambda: counting.store.multi([Create("/a", b"1")])
    with watched.watching():
        assert await data(watched, "/a", "/b") == [None, None]
        assert await data(watched, "/a", "/b") == [b"1", None]
    assert counting.read_paths == ["/a", "/b", "/a"]


@pytest.mark.parametrize("in_flight", [False, True])
async def test_nothing_is_kept_over_a_lost_connection(
    memory: MemoryZooKeeper, counting: Counting, watched: WatchedZnodes, *, in_flight: bool
) -> None:
    async def reconnect() -> None:
        memory.disconnect(counting.store.session_id)
        memory.reconnect(counting.store.session_id)

    with watched.watching():
        if in_flight:
            counting.meddling = reconnect
        await data(watched, "/a")
        if not in_flight:
            await reconnect()
        await counting.store.multi([Create("/a", b"1")])
        assert await data(watched, "/a") == [b"1"]
