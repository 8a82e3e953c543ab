"""Commits whose connection breaks at every point: `commit_chunk` determines the outcome, on both stores."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from enum import Enum
from functools import partial
from itertools import product
from typing import Protocol, TypeVar

import pytest
import trio
import trio.testing
from attrs import define, field

from tests.kit.passing_store import PassingStore
from tests.kit.tcp_relay import TcpRelay, tcp_relay
from tests.store.events import PATIENCE
from transport.store.chunks import Group
from transport.store.commit import Fenced, commit_chunk
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import (
    Check,
    Committed,
    Conflict,
    ConnectionLost,
    Create,
    Delete,
    MetadataStore,
    Op,
    Set,
    Znode,
)
from transport.store.zookeeper import open_zookeeper

T = TypeVar("T")
Send = Callable[[], Awaitable[T]]


class Point(Enum):
    """The points at which the connection breaks."""

    NOWHERE = "kept"
    BEFORE = "request lost"
    AFTER = "answer lost"


class BreakableLine(Protocol):
    """The connection between a store and its server."""

    async def lose(self, point: Point, send: Send[T]) -> T:
        """Send a request, break the connection at `point`, and let it come back later. Raises ConnectionLost."""


class RelayedLine:
    """Through a relay, which is cut when it holds the request, or the answer."""

    def __init__(self, relay: TcpRelay, nursery: trio.Nursery) -> None:
        self._relay = relay
        self._nursery = nursery

    async def lose(self, point: Point, send: Send[T]) -> T:
        direction = self._relay.to_server if point is Point.BEFORE else self._relay.to_client
        direction.stall()

        async def cut() -> None:
            await direction.held()
            self._relay.cut()

        self._nursery.start_soon(cut)
        return await send()


class MemoryLine:
    """To a store in memory, which is disconnected before the request, or once it was done or refused."""

    def __init__(self, memory: MemoryZooKeeper, session_id: int, nursery: trio.Nursery) -> None:
        self._memory = memory
        self._session_id = session_id
        self._nursery = nursery

    async def lose(self, point: Point, send: Send[T]) -> T:
        if point is Point.AFTER:
            with suppress(Conflict):
                await send()
        self._memory.disconnect(self._session_id)
        self._nursery.start_soon(self._reconnect)
        return await send()

    async def _reconnect(self) -> None:
        await trio.testing.wait_all_tasks_blocked()
        self._memory.reconnect(self._session_id)


@define
class Unlucky(PassingStore):
    """A store whose connection breaks at the points of a plan, one for each request; then it is kept."""

    line: BreakableLine
    _plan: Iterator[Point] = field(factory=lambda: iter(()))
    _meanwhile: Sequence[tuple[MetadataStore, Op]] = ()

    def plan(self, points: Iterable[Point], meanwhile: Sequence[tuple[MetadataStore, Op]] = ()) -> None:
        """Take a plan, and what others do once after a connection broke, before its holder looks again."""
        self._plan = iter(points)
        self._meanwhile = meanwhile

    async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        return await self._send(partial(self.store.read, paths, watch=watch))

    async def multi(self, ops: Sequence[Op], *, known: Collection[str] = ()) -> Committed:
        return await self._send(partial(self.store.multi, ops, known=known))

    async def _send(self, send: Send[T]) -> T:
        point = next(self._plan, Point.NOWHERE)
        if point is Point.NOWHERE:
            return await send()
        try:
            return await self.line.lose(point, send)
        except ConnectionLost:
            meanwhile, self._meanwhile = self._meanwhile, ()
            for store, op in meanwhile:
                await store.multi([op])
            raise


Pair = tuple[Unlucky, MetadataStore]


@pytest.fixture(params=["memory", "zookeeper"])
async def pair(request: pytest.FixtureRequest, nursery: trio.Nursery) -> AsyncIterator[Pair]:
    """Give the test an unlucky store, and another one with the same znodes."""
    async with AsyncExitStack() as stack:
        if request.param == "memory":
            memory: MemoryZooKeeper = request.getfixturevalue("memory")
            inner = await stack.enter_async_context(memory.session())
            yield (
                Unlucky(inner, MemoryLine(memory, inner.session_id, nursery)),
                await stack.enter_async_context(memory.session()),
            )
        else:
            chroot: str = request.getfixturevalue("chroot")
            server, _, name = chroot.partition("/")
            relay = await stack.enter_async_context(tcp_relay(int(server.rpartition(":")[2])))
            other = await stack.enter_async_context(open_zookeeper(chroot))
            relayed = await stack.enter_async_context(open_zookeeper(f"{relay.address}/{name}"))
            yield Unlucky(relayed, RelayedLine(relay, nursery)), other


def plans(length: int) -> pytest.MarkDecorator:
    """Try every plan of a length."""
    every = list(product(Point, repeat=length))
    return pytest.mark.parametrize("plan", every, ids=[", ".join(point.value for point in plan) for plan in every])


FENCE = Check("/fence", 0)
BORN: list[Op] = [Create(path) for path in ("/fence", "/a", "/b", "/gone", "/stale")]


async def found(store: MetadataStore, *paths: str) -> list[tuple[bytes, int] | None]:
    """Return the data and the version of znodes."""
    return [None if znode is None else (znode.data, znode.stat.version) for znode in await store.read(paths)]


@plans(3)
async def test_what_is_committed_and_what_is_stale_is_told_wherever_it_breaks(
    pair: Pair, plan: Sequence[Point]
) -> None:
    store, other = pair
    await other.multi([*BORN, Set("/stale", b"theirs", 0)])
    groups: list[Group] = [
        [Set("/a", b"ours", 0), Create("/a/child", b"ours")],
        [Set("/stale", b"late", 0)],
        [Set("/b", b"ours", 0)],
        [Delete("/gone", 0)],
    ]
    store.plan(plan)
    with trio.fail_after(PATIENCE):
        result = await commit_chunk(store, groups, FENCE)

    assert (result.committed, result.conflicts) == ((0, 2, 3), (1,))
    assert await found(other, "/a", "/b", "/gone", "/stale") == [(b"ours", 1), (b"ours", 1), None, (b"theirs", 1)]
    (child,) = await other.read(["/a/child"])
    assert child is not None
    assert result.zxid == child.stat.czxid


@plans(2)
@pytest.mark.parametrize("op", [Set("/a", b"ours", 0), Create("/new", b"ours"), Delete("/gone", 0)], ids=str)
async def test_a_single_operation_takes_effect_once_wherever_it_breaks(
    pair: Pair, plan: Sequence[Point], op: Op
) -> None:
    store, other = pair
    before = await other.multi(BORN)
    store.plan(plan)
    with trio.fail_after(PATIENCE):
        result = await commit_chunk(store, [[op]], FENCE)

    assert (result.committed, result.conflicts) == ((0,), ())
    assert result.zxid is not None
    assert result.zxid > before.zxid
    left = {"/a": (b"ours", 1), "/new": (b"ours", 0), "/gone": None}
    assert await found(other, op.path) == [left[op.path]]


@pytest.mark.requirement("D1")
@pytest.mark.parametrize("point", [Point.BEFORE, Point.AFTER])
async def test_who_is_deposed_in_the_meantime_gets_no_write_in_and_is_told_what_it_had_done(
    pair: Pair, point: Point
) -> None:
    store, other = pair
    await other.multi(BORN)
    store.plan([point], [(other, Set("/fence", b"2", 0))])
    with trio.fail_after(PATIENCE):
        if point is Point.AFTER:
            assert (await commit_chunk(store, [[Set("/a", b"ours", 0)]], FENCE)).committed == (0,)
        else:
            with pytest.raises(Fenced):
                await commit_chunk(store, [[Set("/a", b"ours", 0)]], FENCE)
    assert await found(other, "/a") == [(b"ours", 1) if point is Point.AFTER else (b"", 0)]


@pytest.mark.parametrize("point", [Point.BEFORE, Point.AFTER])
async def test_what_others_write_in_the_meantime_is_not_overwritten(pair: Pair, point: Point) -> None:
    store, other = pair
    await other.multi(BORN)
    theirs = Set("/a", b"theirs", 1 if point is Point.AFTER else 0)
    store.plan([point], [(other, theirs)])
    with trio.fail_after(PATIENCE):
        result = await commit_chunk(store, [[Set("/a", b"ours", 0)], [Set("/b", b"ours", 0)]], FENCE)
    # Of what was done together one znode is proof enough, though the other was changed since.
    assert result.committed == ((0, 1) if point is Point.AFTER else (1,))
    assert await found(other, "/a", "/b") == [(b"theirs", theirs.version + 1), (b"ours", 1)]
