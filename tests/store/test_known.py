"""Znodes that a multi sets and its caller knows are watched from then on, and only later changes are told."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from functools import partial

import pytest
import trio

from simulator.store.ensemble import SimulatedEnsemble
from simulator.store.host import Moment
from tests.store.conftest import OpenStore
from tests.store.events import CONNECTED, PATIENCE, SUSPENDED, Events, changed, children_of, created, deleted
from tests.store.interrupted import Interrupted, interrupted
from tests.store.test_zookeeper import kazoo_client
from transport.store.known import known_after
from transport.store.listeners import Listeners
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import (
    ANY_VERSION,
    Check,
    Conflict,
    Create,
    Delete,
    MetadataStore,
    Op,
    Set,
    StoreEvent,
    WatchFired,
    ensure_paths,
)
from transport.store.requests import Multi, SetWatches
from transport.store.zookeeper import open_zookeeper

BEFORE: Moment = "before"
AFTER: Moment = "after"
OURS = Set("/a", b"ours", ANY_VERSION)
AFTERWARDS: dict[str, tuple[Sequence[Op], Sequence[WatchFired]]] = {
    "nothing": ((), ()),
    "it is set": ((Set("/a", b"theirs", ANY_VERSION),), (changed("/a"),)),
    "it is set to the same": ((OURS,), (changed("/a"),)),
    "it is deleted": ((Delete("/a"),), (deleted("/a"),)),
    "it is another": ((Delete("/a"), Create("/a", b"ours")), (changed("/a"),)),
    "another is set": ((Set("/b", b"theirs", ANY_VERSION),), ()),
}
"""By what others do between our multi and its SetWatches: their operations, and what is told of them."""

after = pytest.mark.parametrize(("theirs", "told"), AFTERWARDS.values(), ids=AFTERWARDS.keys())


async def watch_both(store: MetadataStore) -> Events:
    """Create and watch two znodes, and a third one that marks the end of what is told."""
    await store.multi([Create("/a"), Create("/b"), Create("/end")])
    await store.read(["/a", "/end"], watch=True)
    return Events(store)


async def expect_only(events: Events, other: MetadataStore, *told: WatchFired) -> None:
    """Assert that nothing else is told before a change that comes now."""
    await other.multi([Set("/end", b"", ANY_VERSION)])
    await events.expect(*told, changed("/end"))


async def expect_then(events: Events, other: MetadataStore, told: Sequence[WatchFired]) -> None:
    """Assert what is told of a znode that we have set, and of its next change: that is told if nothing was."""
    [found] = await other.read(["/a"])
    await other.multi([Create("/a") if found is None else Set("/a", b"", ANY_VERSION)])
    await expect_only(events, other, *(told or [changed("/a")]))


# --- every store ------------------------------------------------------------------------------------------------


async def test_what_we_set_is_not_told_and_the_next_change_is(open_store: OpenStore) -> None:
    async with open_store() as store, open_store() as other:
        events = await watch_both(store)
        for data in (b"1", b"2"):
            await store.multi([Set("/a", data, ANY_VERSION)], known=["/a"])
        await other.multi([Set("/a", b"x", 2)])
        await other.multi([Set("/a", b"y", 3)])
        await expect_only(events, other, changed("/a"))


async def test_what_was_not_watched_is_from_then_on(open_store: OpenStore) -> None:
    async with open_store() as store, open_store() as other:
        events = await watch_both(store)
        await store.multi([Set("/b", b"", 0)], known=["/b"])
        await other.multi([Delete("/b")])
        await expect_only(events, other, deleted("/b"))


async def test_what_is_not_known_or_not_set_is_told(open_store: OpenStore) -> None:
    async with open_store() as store, open_store() as other:
        await ensure_paths(store, ["/deleted", "/p"])
        events = await watch_both(store)
        await store.read(["/deleted", "/new"], watch=True)
        await store.children(["/p"], watch=True)
        ops: list[Op] = [
            OURS,
            Check("/b", 0),
            Delete("/deleted"),
            Create("/new"),
            Set("/new", b"", 0),
            Create("/p/child"),
        ]
        await store.multi(ops, known=["/b", "/deleted", "/new", "/p", "/p/child", "/elsewhere"])
        await expect_only(events, other, changed("/a"), deleted("/deleted"), created("/new"), children_of("/p"))


async def test_a_multi_that_fails_leaves_the_watches_as_they_are(open_store: OpenStore) -> None:
    async with open_store() as store, open_store() as other:
        events = await watch_both(store)
        with pytest.raises(Conflict):
            await store.multi([OURS, Check("/b", 7)], known=["/a"])
        await other.multi([Set("/a", b"x", 0)])
        await expect_only(events, other, changed("/a"))


async def test_hundreds_are_known_at_once(open_store: OpenStore) -> None:
    paths = [f"/p/{number:03}" for number in range(400)]
    async with open_store() as store, open_store() as other:
        await store.multi([Create("/p"), *map(Create, paths)])
        await store.read(paths, watch=True)
        events = await watch_both(store)
        await store.multi([Set(path, b"x", 0) for path in paths], known=paths)
        await expect_only(events, other)
        await other.multi([Set(path, b"y", 1) for path in paths])
        await events.expect(*map(changed, paths))


# --- in memory: others write while the multi is announced -------------------------------------------------------


@after
async def test_in_memory_a_write_between_multi_and_watches_is_told(
    memory: MemoryZooKeeper, theirs: Sequence[Op], told: Sequence[WatchFired]
) -> None:
    async with memory.session() as store, memory.session() as other:
        events = await watch_both(store)

        def follow(event: StoreEvent) -> None:
            assert event == changed("/a")
            for op in theirs:
                memory.commit([op], other.session_id)

        await other.read(["/a"], watch=True)
        unsubscribe = other.subscribe(follow)
        await store.multi([OURS], known=["/a"])
        unsubscribe()
        await expect_then(events, other, told)


# --- simulated --------------------------------------------------------------------------------------------------


def commit_by_hand(ensemble: SimulatedEnsemble, ops: Sequence[Op]) -> None:
    for op in ops:
        ensemble.commit_by_hand([op])


@after
async def test_simulated_a_write_between_multi_and_watches_is_told(
    ensemble: SimulatedEnsemble, theirs: Sequence[Op], told: Sequence[WatchFired]
) -> None:
    async with ensemble.session("ours", 18.0) as store, ensemble.session("theirs", 18.0) as other:
        events = await watch_both(store)
        ensemble.on_next_multi("ours", partial(commit_by_hand, ensemble, theirs), when=AFTER)
        await store.multi([OURS], known=["/a"])
        await expect_then(events, other, told)


async def test_simulated_what_made_the_multi_fail_is_told(ensemble: SimulatedEnsemble) -> None:
    async with ensemble.session("ours", 18.0) as store, ensemble.session("theirs", 18.0) as other:
        events = await watch_both(store)
        theirs = Set("/a", b"theirs", 0)
        ensemble.on_next_multi("ours", partial(commit_by_hand, ensemble, [theirs]), when=BEFORE)
        with pytest.raises(Conflict):
            await store.multi([Set("/a", b"ours", 0)], known=["/a"])
        await expect_only(events, other, changed("/a"))


# --- ZooKeeper: others write before the multi, and between it and SetWatches ------------------------------------


async def write_each(store: MetadataStore, ops: Sequence[Op]) -> None:
    for op in ops:
        await store.multi([op])


@after
async def test_a_write_between_multi_and_set_watches_is_told(
    chroot: str, theirs: Sequence[Op], told: Sequence[WatchFired]
) -> None:
    async with open_zookeeper(chroot) as other, interrupted(chroot) as (session, store):
        events = await watch_both(store)
        session.before, session.interruption = SetWatches, partial(write_each, other, theirs)
        await store.multi([OURS], known=["/a"])
        await expect_then(events, other, told)


async def write_and_be_told(other: MetadataStore, session: Interrupted, ops: Sequence[Op]) -> None:
    """Have others write, and return when what the watches saw has reached the session."""
    await write_each(other, ops)
    held = session.listeners._held[0][1]  # noqa: SLF001 - it shows nowhere else
    with trio.fail_after(PATIENCE):
        while not held:
            await trio.sleep(0.001)


async def test_what_made_the_multi_fail_is_told(chroot: str) -> None:
    async with open_zookeeper(chroot) as other, interrupted(chroot) as (session, store):
        events = await watch_both(store)
        theirs = [Set("/a", b"theirs", 0)]
        session.before, session.interruption = Multi, partial(write_and_be_told, other, session, theirs)
        with pytest.raises(Conflict):
            await store.multi([Set("/a", b"ours", 0)], known=["/a"])
        await expect_only(events, other, changed("/a"))


async def test_what_the_multi_overwrites_is_not_told_and_what_comes_later_is(chroot: str) -> None:
    """The znode may even be another one, with the version that we expect."""
    async with open_zookeeper(chroot) as other, interrupted(chroot) as (session, store):
        events = await watch_both(store)
        theirs: list[Op] = [Delete("/a"), Create("/a", b"theirs")]
        session.before, session.interruption = Multi, partial(write_and_be_told, other, session, theirs)
        await store.multi([Set("/a", b"ours", 0)], known=["/a"])
        await other.multi([Set("/a", b"x", 1)])
        await expect_only(events, other, changed("/a"))


async def break_connection(session: Interrupted) -> None:
    """Break the connection, and return when the session is suspended."""
    suspended = trio.Event()
    unsubscribe = session.listeners.subscribe(lambda event: suspended.set() if event == SUSPENDED else None)
    kazoo_client(session)._connection._socket.shutdown(socket.SHUT_RDWR)  # noqa: SLF001 - there is no other way
    with trio.fail_after(PATIENCE):
        await suspended.wait()
    unsubscribe()


async def test_a_connection_that_breaks_after_the_multi_does_not_hide_its_outcome(chroot: str) -> None:
    async with interrupted(chroot) as (session, store):
        events = await watch_both(store)
        session.before, session.interruption = SetWatches, partial(break_connection, session)
        committed = await store.multi([OURS], known=["/a"])
        await events.expect(SUSPENDED, CONNECTED)
        [znode] = await store.read(["/a"])
        assert znode is not None
        assert (znode.data, znode.stat.mzxid) == (b"ours", committed.zxid)


# --- what is held back ------------------------------------------------------------------------------------------


def test_known_is_what_operations_set_and_neither_create_nor_delete() -> None:
    ops: list[Op] = [
        Set("/set", b"", 0),
        Create("/new"),
        Set("/new", b"", 0),
        Set("/gone", b"", 0),
        Delete("/gone"),
        Check("/c", 0),
    ]
    known = ["/set", "/new", "/gone", "/c", "/elsewhere"]
    assert known_after([*ops, Set("/unknown", b"", 0)], known) == {"/set"}
    assert known_after(ops, ()) == frozenset()


def test_what_is_held_back_is_passed_on_at_the_end_unless_it_is_dropped() -> None:
    listeners, heard = Listeners(), list[StoreEvent]()
    listeners.subscribe(heard.append)
    with listeners.holding({"/a"}) as held:
        for event in (changed("/a"), children_of("/a"), changed("/b"), CONNECTED, deleted("/a")):
            listeners.notify(event)
        assert heard == [children_of("/a"), changed("/b"), CONNECTED]
        held.remove(changed("/a"))
    assert heard[3:] == [deleted("/a")]
    listeners.notify(changed("/a"))
    assert heard[4:] == [changed("/a")]


def test_what_is_held_back_twice_is_passed_on_when_both_have_ended() -> None:
    listeners, heard = Listeners(), list[StoreEvent]()
    listeners.subscribe(heard.append)
    with listeners.holding({"/a"}):
        with listeners.holding({"/a"}):
            listeners.notify(changed("/a"))
        assert heard == []
    assert heard == [changed("/a")]
