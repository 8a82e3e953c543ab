"""The contract of every metadata store: ZooKeeper's semantics."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
from msgspec.structs import replace

from tests.store.conftest import GiveAway, OpenStore
from tests.store.events import Events, changed, children_of, created, deleted
from transport.store.acls import READ, identities, is_open
from transport.store.protocol import (
    ANY_VERSION,
    Check,
    Conflict,
    ConflictReason,
    Create,
    Delete,
    MetadataStore,
    Op,
    SessionExpired,
    SessionState,
    Set,
    Stat,
    StoreError,
    ensure_paths,
)


async def stat_of(store: MetadataStore, path: str) -> Stat:
    (znode,) = await store.read([path])
    assert znode is not None
    return znode.stat


# --- reading and writing ----------------------------------------------------------------------------------------


async def test_a_znode_is_read_as_it_was_written(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Create("/a", b"one")])
        (znode,) = await store.read(["/a"])

    assert znode is not None
    assert znode.data == b"one"
    assert znode.stat.version == 0
    assert znode.stat.ephemeral_owner == 0
    assert znode.stat.ctime_ms == znode.stat.mtime_ms > 1_600_000_000_000


async def test_acls_are_read_unless_they_hide_themselves(open_store: OpenStore, give_away_znode: GiveAway) -> None:
    async with open_store() as store:
        await store.multi([Create("/ours"), Create("/theirs")])
        await give_away_znode("/theirs")
        ours, theirs, missing = await store.acls(["/ours", "/theirs", "/missing"])
    assert ours is not None
    assert is_open(ours) or [one.partition(":")[0] for one in identities(ours)] == ["digest"]
    assert is_open(ours, READ)
    assert (theirs, missing) == (None, None)


async def test_every_set_raises_the_version_and_the_mzxid_only(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Create("/a", b"one")])
        before = await stat_of(store, "/a")
        committed = await store.multi([Set("/a", b"two", 0)])
        (znode,) = await store.read(["/a"])

    assert znode is not None
    assert znode.data == b"two"
    assert znode.stat == replace(before, version=1, mzxid=committed.zxid, mtime_ms=znode.stat.mtime_ms)
    assert committed.results == (znode.stat,)


async def test_any_version_is_taken_when_none_is_named(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Create("/a"), Set("/a", b"", ANY_VERSION), Check("/a", ANY_VERSION), Delete("/a")])
        assert await store.read(["/a"]) == [None]


async def test_a_multi_has_a_result_for_each_operation(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Create("/gone")])
        committed = await store.multi([Create("/a"), Set("/a", b"x", 0), Check("/a", 1), Delete("/gone", 0)])
        assert committed.results == ("/a", await stat_of(store, "/a"), None, None)


async def test_znodes_created_in_one_multi_share_its_zxid_as_their_czxid(open_store: OpenStore) -> None:
    async with open_store() as store:
        first = await store.multi([Create("/a"), Create("/a/b"), Create("/c")])
        second = await store.multi([Create("/d")])
        stats = [await stat_of(store, path) for path in ("/a", "/a/b", "/c", "/d")]

    assert [stat.czxid for stat in stats] == [first.zxid, first.zxid, first.zxid, second.zxid]
    assert first.zxid < second.zxid


async def test_an_empty_multi_has_a_zxid_too(open_store: OpenStore) -> None:
    async with open_store() as store:
        before = await store.multi([Create("/a")])
        assert (await store.multi([])).zxid >= before.zxid


async def test_a_long_read_keeps_the_order_and_has_none_for_what_is_missing(open_store: OpenStore) -> None:
    numbers = range(0, 10_000, 2)
    async with open_store() as store:
        for start in range(0, len(numbers), 500):
            await store.multi([Create(f"/{n}", str(n).encode()) for n in numbers[start : start + 500]])
        found = await store.read([f"/{n}" for n in range(10_000)])

    expected = [str(n).encode() if n in numbers else None for n in range(10_000)]
    assert [None if znode is None else znode.data for znode in found] == expected


async def test_a_read_that_was_begun_before_finds_the_same(open_store: OpenStore) -> None:
    paths = [f"/{number}" for number in range(3_000)]
    async with open_store() as store:
        await store.multi([Create(path, path.encode()) for path in paths[::3]])
        await store.read_ahead(paths)
        begun = await store.read(paths)
        assert begun == await store.read(paths)
    assert [znode and znode.data.decode() for znode in begun[:4]] == ["/0", None, None, "/3"]


@pytest.mark.parametrize("other", ["a write", "the same read", "another read", "a list", "a watch"])
async def test_a_read_that_was_begun_is_forgotten_when_something_else_comes(open_store: OpenStore, other: str) -> None:
    async with open_store() as store, open_store() as writer:
        await store.multi([Create("/a", b"one"), Create("/b", b"other")])
        await store.read_ahead(["/a"])
        match other:
            case "a write":
                await store.multi([Set("/a", b"two", 0)])
            case "the same read":
                await store.read(["/a"])
            case "another read":
                (found,) = await store.read(["/b"])
                assert found is not None
                assert found.data == b"other"
            case "a list":
                await store.children(["/"])
        version = (await writer.multi([Set("/a", b"three", ANY_VERSION), Create("/c")])).zxid
        (znode,) = await store.read(["/a"], watch=other == "a watch")
    assert znode is not None
    assert (znode.data, znode.stat.mzxid) == (b"three", version)


async def test_reading_nothing_finds_nothing(open_store: OpenStore) -> None:
    async with open_store() as store:
        assert await store.read([], watch=True) == []
        assert await store.children([], watch=True) == []


async def test_children_are_listed_sorted_and_none_stands_for_a_missing_parent(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Create("/p"), Create("/p/b"), Create("/p/a"), Create("/p/b/c"), Create("/leaf")])
        assert await store.children(["/p", "/missing", "/leaf", "/"]) == [["a", "b"], None, [], ["leaf", "p"]]


async def test_names_may_be_of_any_language(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Create("/Schloß", "Größe".encode())])
        (znode,) = await store.read(["/Schloß"])
        assert znode is not None
        assert znode.data.decode() == "Größe"
        assert await store.children(["/"]) == [["Schloß"]]


async def test_ensure_paths_creates_what_is_missing_and_leaves_the_rest(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Create("/a", b"kept")])
        await ensure_paths(store, ["/a/b/c", "/d"])
        await ensure_paths(store, ["/a/b/c", "/d"])
        found = await store.read(["/a", "/a/b", "/a/b/c", "/d"])
    assert [znode.data for znode in found if znode] == [b"kept", b"", b"", b""]


# --- refusals ---------------------------------------------------------------------------------------------------

REFUSALS: list[tuple[list[Op], int, ConflictReason]] = [
    ([Create("/a")], 0, ConflictReason.NODE_EXISTS),
    ([Create("/missing/child")], 0, ConflictReason.NO_NODE),
    ([Set("/a", b"", 7)], 0, ConflictReason.BAD_VERSION),
    ([Set("/missing", b"", ANY_VERSION)], 0, ConflictReason.NO_NODE),
    ([Delete("/a", 7)], 0, ConflictReason.BAD_VERSION),
    ([Delete("/missing")], 0, ConflictReason.NO_NODE),
    ([Delete("/parent")], 0, ConflictReason.NOT_EMPTY),
    ([Check("/a", 7)], 0, ConflictReason.BAD_VERSION),
    ([Check("/missing", 0)], 0, ConflictReason.NO_NODE),
    ([Set("/a", b"", 0), Set("/a", b"", 0)], 1, ConflictReason.BAD_VERSION),
    ([Check("/a", 0), Create("/new"), Delete("/a", 3), Create("/a")], 2, ConflictReason.BAD_VERSION),
]


@pytest.mark.parametrize(("ops", "index", "reason"), REFUSALS)
async def test_a_refused_multi_names_its_first_conflict_and_changes_nothing(
    open_store: OpenStore, ops: Sequence[Op], index: int, reason: ConflictReason
) -> None:
    paths = ["/", "/a", "/parent", "/parent/child", "/new", "/b"]
    async with open_store() as store:
        await store.multi([Create("/a", b"data"), Create("/parent"), Create("/parent/child")])
        before = await store.read(paths), await store.children(paths)
        with pytest.raises(Conflict) as caught:
            await store.multi([Create("/b"), Delete("/parent/child"), Create("/parent/child"), *ops])
        after = await store.read(paths), await store.children(paths)

    assert (caught.value.index - 3, caught.value.path, caught.value.reason) == (index, ops[index].path, reason)
    assert before == after


async def test_a_rolled_back_multi_fires_no_watch(open_store: OpenStore) -> None:
    async with open_store() as store:
        events = Events(store)
        await store.read(["/a", "/b"], watch=True)
        with pytest.raises(Conflict):
            await store.multi([Create("/a"), Delete("/missing")])
        await store.multi([Create("/b")])
        await events.expect(created("/b"))


async def test_an_ephemeral_has_no_children(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Create("/e", ephemeral=True)])
        with pytest.raises(StoreError, match=r"^/e/child cannot be created: its parent is ephemeral$"):
            await store.multi([Create("/before"), Create("/e/child")])
        assert await store.read(["/before"]) == [None]


@pytest.mark.parametrize(
    "op", [Create("relative"), Create("/a/"), Create("//a"), Create("/a//b"), Check("", 0), Delete("/")]
)
async def test_a_malformed_path_is_refused(open_store: OpenStore, op: Op) -> None:
    async with open_store() as store:
        with pytest.raises(StoreError, match="is not a valid path"):
            await store.multi([op])


async def test_the_root_exists(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Check("/", 0), Set("/", b"x", 0)])
        with pytest.raises(Conflict, match=r"^/: the node exists$"):
            await store.multi([Create("/")])


async def test_a_multi_over_the_limit_in_bytes_is_refused_before_it_is_sent(
    open_store: OpenStore,
) -> None:
    async with open_store() as store:
        with pytest.raises(StoreError, match="over ZooKeeper's limit"):
            await store.multi([Create("/a", b"x" * 600_000), Create("/b", b"x" * 600_000)])
        assert await store.read(["/a"]) == [None]
        assert store.state is SessionState.CONNECTED


# --- sequences and ephemerals -----------------------------------------------------------------------------------


async def test_a_sequence_counts_all_births_of_its_parent(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Create("/q"), Create("/q/other"), Delete("/q/other")])
        with pytest.raises(Conflict):
            await store.multi([Create("/q/rolled-back"), Delete("/missing")])
        committed = await store.multi([Create("/q/n_", b"1", sequence=True), Create("/q/", sequence=True)])
        names = await store.children(["/q"])

    assert committed.results == ("/q/n_0000000001", "/q/0000000002")
    assert names == [["0000000002", "n_0000000001"]]


async def test_an_ephemeral_belongs_to_its_session_and_goes_with_it(open_store: OpenStore) -> None:
    async with open_store() as other:
        events = Events(other)
        async with open_store() as store:
            await store.multi([Create("/e", ephemeral=True), Create("/p")])
            assert (await stat_of(other, "/e")).ephemeral_owner == store.session_id != other.session_id
            await other.read(["/e"], watch=True)
        await events.expect(deleted("/e"))
        assert await other.children(["/"]) == [["p"]]


async def test_an_ephemeral_sequence_is_both(open_store: OpenStore) -> None:
    async with open_store() as store:
        committed = await store.multi([Create("/m_", ephemeral=True, sequence=True)])
        assert committed.results == ("/m_0000000000",)
        assert (await stat_of(store, "/m_0000000000")).ephemeral_owner == store.session_id


async def test_a_closed_session_says_so(open_store: OpenStore) -> None:
    async with open_store() as store:
        states = [store.state]
    assert [*states, store.state] == [SessionState.CONNECTED, SessionState.CLOSED]
    with pytest.raises(SessionExpired):
        await store.read(["/"])
    with pytest.raises(SessionExpired):
        await store.multi([])


# --- watches ----------------------------------------------------------------------------------------------------


async def test_a_watched_znode_fires_when_it_is_changed(open_store: OpenStore) -> None:
    async with open_store() as store, open_store() as other:
        events = Events(store)
        await store.multi([Create("/a"), Create("/b")])
        await store.read(["/a", "/b"], watch=True)
        await other.multi([Set("/b", b"x", 0), Set("/a", b"x", 0)])
        await events.expect(changed("/b"), changed("/a"))


async def test_a_watch_fires_for_changes_of_its_own_session(open_store: OpenStore) -> None:
    async with open_store() as store:
        events = Events(store)
        await store.multi([Create("/a")])
        await store.read(["/a"], watch=True)
        await store.multi([Set("/a", b"x", 0)])
        await events.expect(changed("/a"))


async def test_a_watched_znode_fires_when_it_is_deleted(open_store: OpenStore) -> None:
    async with open_store() as store, open_store() as other:
        events = Events(store)
        await store.multi([Create("/a")])
        await store.read(["/a"], watch=True)
        await other.multi([Delete("/a")])
        await events.expect(deleted("/a"))


async def test_a_missing_znode_that_is_watched_fires_when_it_is_created(open_store: OpenStore) -> None:
    async with open_store() as store, open_store() as other:
        events = Events(store)
        assert await store.read(["/a"], watch=True) == [None]
        await other.multi([Create("/a")])
        await events.expect(created("/a"))


async def test_watched_children_fire_when_one_comes_or_goes_but_not_when_it_changes(open_store: OpenStore) -> None:
    async with open_store() as store, open_store() as other:
        events = Events(store)
        await store.multi([Create("/p"), Create("/p/old"), Create("/q"), Create("/q/old"), Create("/r")])
        await store.children(["/p", "/q", "/r", "/missing"], watch=True)
        await other.multi([Set("/p/old", b"x", 0), Set("/p", b"x", 0), Create("/missing")])
        await other.multi([Create("/p/new")])
        await other.multi([Delete("/q/old")])
        await other.multi([Delete("/r")])
        await events.expect(children_of("/p"), children_of("/q"), deleted("/r"))


async def test_a_change_before_the_read_fires_nothing(open_store: OpenStore) -> None:
    async with open_store() as store, open_store() as other:
        await store.read(["/"])
        await other.multi([Create("/p"), Create("/a")])
        await other.multi([Set("/p", b"x", 0), Create("/p/old"), Create("/b"), Delete("/b")])
        events = Events(store)
        await store.read(["/p", "/a", "/b"], watch=True)
        await store.children(["/p"], watch=True)
        await other.multi([Create("/p/new"), Create("/b")])
        await events.expect(children_of("/p"), created("/b"))


async def test_a_watch_fires_once(open_store: OpenStore) -> None:
    async with open_store() as store, open_store() as other:
        events = Events(store)
        await store.multi([Create("/a"), Create("/end")])
        await store.read(["/a"], watch=True)
        await store.read(["/a"], watch=True)
        await store.children(["/end"], watch=True)
        await other.multi([Set("/a", b"1", 0)])
        await other.multi([Set("/a", b"2", 1)])
        await other.multi([Create("/end/child")])
        await events.expect(changed("/a"), children_of("/end"))


async def test_a_deletion_fires_once_for_who_watches_data_and_children(open_store: OpenStore) -> None:
    async with open_store() as store, open_store() as other:
        events = Events(store)
        await store.multi([Create("/a"), Create("/end")])
        await store.read(["/a", "/end"], watch=True)
        await store.children(["/a"], watch=True)
        await other.multi([Delete("/a")])
        await other.multi([Delete("/end")])
        await events.expect(deleted("/a"), deleted("/end"))


async def test_nothing_fires_for_what_is_read_without_a_watch(open_store: OpenStore) -> None:
    async with open_store() as store:
        events = Events(store)
        await store.multi([Create("/a"), Create("/end")])
        await store.read(["/a"])
        await store.children(["/a"])
        await store.read(["/end"], watch=True)
        await store.multi([Create("/a/b"), Set("/a", b"x", 0), Set("/end", b"x", 0)])
        await events.expect(changed("/end"))


async def test_a_long_read_arms_every_watch(open_store: OpenStore) -> None:
    there = [f"/{n}" for n in range(1500)]
    missing = [f"/missing-{n}" for n in range(1500)]
    async with open_store() as store, open_store() as other:
        events = Events(store)
        await store.multi([Create(path) for path in there])
        await store.read([*there, *missing], watch=True)
        await other.multi([Delete(path) for path in there])
        await other.multi([Create(path) for path in missing])
        await events.expect(*map(deleted, there), *map(created, missing))


async def test_who_unsubscribed_hears_nothing_more(open_store: OpenStore) -> None:
    async with open_store() as store:
        heard: list[object] = []
        unsubscribe = store.subscribe(heard.append)
        events = Events(store)
        unsubscribe()
        unsubscribe()
        await store.read(["/a"], watch=True)
        await store.multi([Create("/a")])
        await events.expect(created("/a"))
        assert heard == []


async def test_a_reader_that_is_cancelled_leaves_the_store_in_order(open_store: OpenStore) -> None:
    async with open_store() as store:
        await store.multi([Create("/a", b"x")])
        async with trio.open_nursery() as nursery:
            for _ in range(200):
                nursery.start_soon(store.read, ["/a"] * 20)
            await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        found = await store.read(["/a"] * 3)
        assert [znode.data for znode in found if znode] == [b"x"] * 3
