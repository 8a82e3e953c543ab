"""Chunked, fenced commits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

import pytest
import trio
import trio.testing
from attrs import define

from tests.kit.passing_store import PassingStore
from tests.store.conftest import OpenStore
from transport.store.chunks import Group, plan_chunks
from transport.store.commit import ChunkResult, Fenced, Found, commit_chunk, has_landed, landed_zxid, survivors
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import (
    ANY_VERSION,
    Check,
    Committed,
    Create,
    Delete,
    MetadataStore,
    Op,
    SessionExpired,
    Set,
    Stat,
    StoreEvent,
    Znode,
)

# --- planning ---------------------------------------------------------------------------------------------------


def group(count: int, size: int = 0) -> Group:
    return [Set(f"/{number}", b"x" * size, 0) for number in range(count)]


@pytest.mark.parametrize(
    ("groups", "max_ops", "expected"),
    [
        ([], 4, []),
        ([group(1)] * 3, 4, [[0, 1, 2]]),
        ([group(1)] * 5, 4, [[0, 1, 2, 3], [4]]),
        ([group(2)] * 5, 4, [[0, 1], [2, 3], [4]]),
        ([group(3), group(3), group(1)], 4, [[0], [1, 2]]),
        ([group(1), group(9), group(1)], 4, [[0], [1], [2]]),
        ([group(0)] * 3, 1, [[0, 1, 2]]),
    ],
)
def test_chunks_hold_whole_groups_in_order(groups: Sequence[Group], max_ops: int, expected: list[list[int]]) -> None:
    assert plan_chunks(groups, max_ops=max_ops) == expected


def test_chunks_are_limited_in_bytes_too() -> None:
    assert plan_chunks([group(1, 400)] * 4 + [group(1, 5000)], max_bytes=1000) == [[0, 1], [2, 3], [4]]


# --- judging what was found -------------------------------------------------------------------------------------


def at(version: int, data: bytes = b"", zxid: int = 5) -> Znode:
    return Znode(data, Stat(czxid=1, mzxid=zxid, ctime_ms=0, mtime_ms=0, version=version))


SURVIVORS: list[tuple[str, list[Group], Found, list[int]]] = [
    ("versions that match live", [[Set("/a", b"", 3)], [Check("/b", 4)]], {"/a": at(3), "/b": at(4)}, [0, 1]),
    ("versions that differ die", [[Set("/a", b"", 3)], [Delete("/b", 4)]], {"/a": at(4), "/b": at(4)}, [1]),
    ("what is gone dies", [[Set("/a", b"", ANY_VERSION)], [Check("/a", 0)], [Delete("/a")]], {"/a": None}, []),
    ("what exists is not created", [[Create("/a")], [Create("/b")]], {"/a": at(0), "/b": None, "/": at(0)}, [1]),
    ("a parent must exist", [[Create("/p/a")]], {"/p/a": None, "/p": None}, []),
    (
        "or be created before",
        [[Create("/p")], [Create("/p/a")]],
        {"/p": None, "/p/a": None, "/": at(0)},
        [0, 1],
    ),
    (
        "by a group that lives",
        [[Create("/p"), Check("/c", 9)], [Create("/p/a")]],
        {"/p": None, "/p/a": None, "/": at(0), "/c": at(0)},
        [],
    ),
    (
        "groups build on each other",
        [[Set("/a", b"", 3)], [Set("/a", b"", 4)], [Check("/a", 5)]],
        {"/a": at(3)},
        [0, 1, 2],
    ),
    (
        "a group dies whole",
        [[Set("/a", b"", 3), Set("/b", b"", 0)], [Set("/a", b"", 3)]],
        {"/a": at(3), "/b": None},
        [1],
    ),
    ("sequences need a parent only", [[Create("/a", sequence=True)]], {"/": at(0)}, [0]),
]


@pytest.mark.parametrize(
    ("groups", "found", "expected"), [row[1:] for row in SURVIVORS], ids=[row[0] for row in SURVIVORS]
)
def test_survivors(groups: list[Group], found: Found, expected: list[int]) -> None:
    assert survivors(groups, range(len(groups)), found) == expected


LANDED: list[tuple[str, list[Op], Found, bool]] = [
    ("set", [Set("/a", b"new", 3)], {"/a": at(4, b"new")}, True),
    ("not set yet", [Set("/a", b"new", 3)], {"/a": at(3, b"old")}, False),
    ("set by somebody else", [Set("/a", b"new", 3)], {"/a": at(4, b"theirs")}, False),
    ("set to what it was", [Set("/a", b"same", 3)], {"/a": at(3, b"same")}, False),
    ("changed since", [Set("/a", b"new", 3)], {"/a": at(5, b"later")}, False),
    ("gone since", [Set("/a", b"new", 3)], {"/a": None}, False),
    (
        "changed since, another tells",
        [Set("/a", b"a", 3), Set("/b", b"b", 0)],
        {"/a": at(5, b"later"), "/b": at(1, b"b")},
        True,
    ),
    (
        "equal by chance, another tells",
        [Set("/a", b"a", 3), Set("/b", b"b", 0)],
        {"/a": at(4, b"a"), "/b": at(0)},
        False,
    ),
    ("created", [Create("/a", b"new")], {"/a": at(0, b"new")}, True),
    ("not created", [Create("/a", b"new")], {"/a": None}, False),
    ("created by somebody else", [Create("/a", b"new")], {"/a": at(0, b"theirs")}, False),
    ("created and set", [Create("/a"), Set("/a", b"new", 0)], {"/a": at(1, b"new")}, True),
    ("set twice", [Set("/a", b"1", 3), Set("/a", b"2", 4)], {"/a": at(5, b"2")}, True),
    ("set at any version", [Set("/a", b"new", ANY_VERSION)], {"/a": at(7, b"new")}, True),
    ("not set at any version", [Set("/a", b"new", ANY_VERSION)], {"/a": at(7, b"old")}, False),
    ("deleted", [Delete("/a", 3)], {"/a": None}, True),
    ("not deleted", [Delete("/a", 3)], {"/a": at(3)}, False),
    ("not deleted at any version", [Delete("/a")], {"/a": at(3)}, False),
    ("deleted and created anew", [Delete("/a", 3), Create("/a", b"new")], {"/a": at(0, b"new")}, True),
    ("checks tell nothing", [Check("/a", 3)], {"/a": at(3)}, False),
    ("sequences tell nothing", [Create("/a", sequence=True)], {"/": at(0)}, False),
]


@pytest.mark.parametrize(("ops", "found", "expected"), [row[1:] for row in LANDED], ids=[row[0] for row in LANDED])
def test_whether_an_attempt_landed(ops: list[Op], found: Found, *, expected: bool) -> None:
    assert has_landed(ops, found) is expected


def test_the_zxid_of_an_attempt_is_that_of_what_it_wrote_and_nobody_changed_since() -> None:
    ops: list[Op] = [Set("/a", b"a", 0), Set("/b", b"b", 0), Delete("/c")]
    found: Found = {"/a": at(1, b"a", zxid=70), "/b": at(9, b"later", zxid=99), "/c": None}
    assert landed_zxid(ops, found) == 70
    assert landed_zxid([Delete("/c")], found) is None


# --- committing -------------------------------------------------------------------------------------------------


@define
class Wrapped(PassingStore):
    """Counts, and does something at the first read."""

    first_read: list[Znode | None] | None = None
    before_first_read: Callable[[], Awaitable[object] | None] = lambda: None
    reads: int = 0
    multis: int = 0

    async def read(self, paths: Sequence[str], *, watch: bool = False) -> list[Znode | None]:
        self.reads += 1
        if self.reads == 1:
            waiting = self.before_first_read()
            if waiting is not None:
                await waiting
            if self.first_read is not None:
                return self.first_read
        return await super().read(paths, watch=watch)

    async def multi(self, ops: Sequence[Op], *, known: Collection[str] = ()) -> Committed:
        self.multis += 1
        return await super().multi(ops, known=known)


async def data_of(store: MetadataStore, paths: Sequence[str]) -> list[bytes | None]:
    return [None if znode is None else znode.data for znode in await store.read(paths)]


async def test_a_chunk_commits_under_one_zxid(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Create("/fence")])
        result = await commit_chunk(store, [[Create("/a"), Create("/a/b")], [Create("/c")]], Check("/fence", 0))
        stats = [znode.stat for znode in await store.read(["/a", "/a/b", "/c"]) if znode]

    assert result == ChunkResult(stats[0].czxid, (0, 1), ())
    assert {stat.czxid for stat in stats} == {result.zxid}


async def test_stale_groups_are_dropped_whole_and_the_rest_is_committed(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Create(f"/{n}") for n in range(6)] + [Set("/1", b"theirs", 0), Delete("/3")])
        groups: list[Group] = [[Set(f"/{n}", b"ours", 0), Create(f"/{n}/child")] for n in range(5)]
        groups.append([Create("/5")])
        result = await commit_chunk(store, groups, None)

        assert (result.committed, result.conflicts) == ((0, 2, 4), (1, 3, 5))
        assert await data_of(store, [f"/{n}" for n in range(6)]) == [b"ours", b"theirs", b"ours", None, b"ours", b""]
        assert await store.children(["/0", "/1"]) == [["child"], []]


async def test_all_stale_groups_cost_one_read_however_many_they_are(open_store: OpenStore) -> None:
    async with open_store() as store:
        counting = Wrapped(store)
        groups: list[Group] = [[Set(f"/missing/{n}", b"", 0)] for n in range(50)]
        groups += [[Create(f"/nowhere/{n}")] for n in range(50)]
        assert await commit_chunk(counting, groups, None) == ChunkResult(None, (), tuple(range(100)))
        assert (counting.multis, counting.reads) == (1, 1)


async def test_a_conflict_that_reading_does_not_show_is_dropped_by_its_index(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Create("/p"), Create("/p/child"), Create("/a")])
        result = await commit_chunk(store, [[Set("/a", b"x", 0)], [Delete("/p")]], None)
        assert (result.committed, result.conflicts) == ((0,), (1,))


async def test_nothing_is_committed_of_nothing(open_store: OpenStore) -> None:
    async with open_store() as store:
        assert await commit_chunk(store, [], Check("/missing", 0)) == ChunkResult(None, (), ())


@pytest.mark.requirement("D1")
@pytest.mark.parametrize("fence", [Check("/fence", 0), Check("/missing", 0)])
async def test_a_fence_that_does_not_hold_stops_everything(open_store: OpenStore, fence: Check) -> None:
    async with open_store() as store:
        await store.multi([Create("/fence"), Create("/a"), Set("/fence", b"2", 0)])
        with pytest.raises(Fenced):
            await commit_chunk(store, [[Set("/a", b"late", 0)], [Set("/missing", b"", 0)]], fence)
        assert await data_of(store, ["/a"]) == [b""]


@pytest.mark.requirement("D1")
async def test_a_fence_is_checked_again_with_every_attempt(memory: MemoryZooKeeper) -> None:
    async with memory.session() as store, memory.session() as usurper:
        await store.multi([Create("/fence"), Create("/a")])
        racing = Wrapped(store, before_first_read=partial(usurper.multi, [Set("/fence", b"2", 0)]))
        with pytest.raises(Fenced):
            await commit_chunk(racing, [[Set("/missing", b"", 0)], [Set("/a", b"late", 0)]], Check("/fence", 0))
        assert await data_of(store, ["/a"]) == [b""]


# --- outcomes that a broken connection leaves unknown -------------------------------------------------------------


async def restore(memory: MemoryZooKeeper, session_id: int, times: int = 1) -> None:
    """Reconnect when nothing else can go on."""
    for _ in range(times):
        await trio.testing.wait_all_tasks_blocked()
        memory.reconnect(session_id)


async def lose_the_answer(memory: MemoryZooKeeper, store: MetadataStore, other: MetadataStore, path: str) -> None:
    """Break the connection of `store` when `other` sees that `path` changed, and restore it later."""
    session_id = store.session_id

    def disconnect(_: StoreEvent) -> None:
        memory.disconnect(session_id)
        unsubscribe()

    unsubscribe = other.subscribe(disconnect)
    await other.read([path], watch=True)


async def test_a_commit_whose_answer_was_lost_is_found_done(memory: MemoryZooKeeper) -> None:
    async with memory.session() as store, memory.session() as other, trio.open_nursery() as nursery:
        await store.multi([Create("/a"), Create("/b"), Set("/b", b"theirs", 0)])
        await lose_the_answer(memory, store, other, "/a")
        nursery.start_soon(restore, memory, store.session_id)
        result = await commit_chunk(store, [[Set("/a", b"ours", 0)], [Create("/a/c")]], Check("/b", 1))

        (znode, child) = await store.read(["/a", "/a/c"])
        assert znode is not None
        assert child is not None
        assert znode.stat.version == 1
        assert result == ChunkResult(child.stat.czxid, (0, 1), ())


async def test_a_commit_that_was_lost_itself_is_done_once_connected(memory: MemoryZooKeeper) -> None:
    async with memory.session() as store, trio.open_nursery() as nursery:
        await store.multi([Create("/a")])
        memory.disconnect(store.session_id)
        nursery.start_soon(restore, memory, store.session_id)
        result = await commit_chunk(store, [[Set("/a", b"ours", 0)]], None)
        assert (result.committed, result.conflicts) == ((0,), ())
        assert await data_of(store, ["/a"]) == [b"ours"]


async def test_deletions_whose_answer_was_lost_are_found_done(memory: MemoryZooKeeper) -> None:
    async with memory.session() as store, memory.session() as other, trio.open_nursery() as nursery:
        before = await store.multi([Create("/a"), Create("/fence")])
        await lose_the_answer(memory, store, other, "/a")
        nursery.start_soon(restore, memory, store.session_id)
        result = await commit_chunk(store, [[Delete("/a", 0)]], Check("/fence", 0))
        assert result.committed == (0,)
        assert result.zxid is not None
        assert result.zxid > before.zxid


async def test_a_commit_that_a_late_server_does_not_show_yet_is_no_conflict(
    memory: MemoryZooKeeper,
) -> None:
    async with memory.session() as store, memory.session() as other, trio.open_nursery() as nursery:
        created = await store.multi([Create("/a")])
        late = Wrapped(store, first_read=await store.read(["/a"]))
        await lose_the_answer(memory, store, other, "/a")
        nursery.start_soon(restore, memory, store.session_id)
        result = await commit_chunk(late, [[Set("/a", b"ours", 0)]], None)

        (znode,) = await store.read(["/a"])
        assert znode is not None
        assert result == ChunkResult(znode.stat.mzxid, (0,), ())
        assert znode.stat.mzxid > created.zxid
        assert late.multis == 2


async def test_a_connection_that_breaks_again_is_waited_for_again(memory: MemoryZooKeeper) -> None:
    async with memory.session() as store, trio.open_nursery() as nursery:
        session_id = store.session_id
        await store.multi([Create("/a")])
        memory.disconnect(session_id)
        nursery.start_soon(restore, memory, session_id, 2)
        breaking = Wrapped(store, before_first_read=lambda: memory.disconnect(session_id))
        result = await commit_chunk(breaking, [[Set("/a", b"ours", 0)]], None)
        assert result.committed == (0,)
        assert breaking.reads == 2


@pytest.mark.parametrize("reconnect", [True, False])
async def test_a_session_that_expires_meanwhile_is_given_up(memory: MemoryZooKeeper, *, reconnect: bool) -> None:
    async def expire() -> None:
        await trio.testing.wait_all_tasks_blocked()
        memory.reconnect(session_id)
        memory.expire(session_id, reconnect=reconnect)

    async with memory.session() as store, trio.open_nursery() as nursery:
        session_id = store.session_id
        memory.disconnect(session_id)
        nursery.start_soon(expire)
        with pytest.raises(SessionExpired):
            await commit_chunk(store, [[Create("/a")]], None)
