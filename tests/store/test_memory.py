"""The failures on demand of the store in memory."""

from __future__ import annotations

import pytest
import trio

from tests.store.conftest import NOW_MS
from tests.store.events import CLOSED, CONNECTED, EXPIRED, SUSPENDED, Events, changed, children_of, created, deleted
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import (
    ConnectionLost,
    Create,
    SessionChanged,
    SessionExpired,
    SessionState,
    Set,
    StoreEvent,
)


async def test_timestamps_are_those_of_the_clock(memory: MemoryZooKeeper) -> None:
    async with memory.session() as store:
        await store.multi([Create("/a")])
        (znode,) = await store.read(["/a"])
    assert znode is not None
    assert (znode.stat.ctime_ms, znode.stat.mtime_ms) == (NOW_MS, NOW_MS)


async def test_an_expired_session_loses_its_ephemerals_and_gets_a_new_id(memory: MemoryZooKeeper) -> None:
    async with memory.session() as store, memory.session() as other:
        await store.multi([Create("/a", ephemeral=True), Create("/b", ephemeral=True)])
        await store.read(["/a", "/b"], watch=True)
        await other.read(["/a", "/b"], watch=True)
        mine, theirs, old = Events(store), Events(other), store.session_id
        memory.expire(store.session_id)

        await mine.expect(EXPIRED, CONNECTED)
        await theirs.expect(deleted("/a"), deleted("/b"))
        assert await store.read(["/a", "/b"]) == [None, None]
        assert store.session_id not in (old, other.session_id)


async def test_requests_raise_between_expiry_and_the_new_session(memory: MemoryZooKeeper) -> None:
    async with memory.session() as store:
        old = store.session_id
        memory.expire(old, reconnect=False)
        assert store.state is SessionState.EXPIRED
        with pytest.raises(SessionExpired):
            await store.read(["/"])
        memory.reconnect(old)
        assert await store.children(["/"]) == [[]]


@pytest.mark.parametrize("failure", ["expire", "disconnect"])
async def test_a_request_that_meets_a_failure_on_its_way_is_not_done(memory: MemoryZooKeeper, failure: str) -> None:
    refused: list[str] = []

    async def create(path: str) -> None:
        try:
            await store.multi([Create(path)])
        except (ConnectionLost, SessionExpired):
            refused.append(path)

    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        getattr(memory, failure)(session_id)

    async with memory.session() as store, memory.session() as other:
        session_id = store.session_id
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(create, f"/{number}")
            nursery.start_soon(fail)
        (names,) = await other.children(["/"])
        assert names is not None
        assert sorted(refused + [f"/{name}" for name in names]) == sorted(f"/{number}" for number in range(20))


async def test_a_disconnected_session_keeps_its_ephemerals_and_loses_its_watches(memory: MemoryZooKeeper) -> None:
    async with memory.session() as store, memory.session() as other:
        events, session_id = Events(store), store.session_id
        await store.multi([Create("/e", ephemeral=True), Create("/p")])
        await store.read(["/p"], watch=True)
        memory.disconnect(session_id)
        with pytest.raises(ConnectionLost):
            await store.read(["/p"])
        with pytest.raises(ConnectionLost):
            await store.multi([Create("/lost")])
        await other.multi([Set("/p", b"x", 0)])
        memory.reconnect(session_id)

        await events.expect(SUSPENDED, CONNECTED)
        assert store.session_id == session_id
        assert await store.children(["/"]) == [["e", "p"]]
        await store.read(["/p"], watch=True)
        await other.multi([Set("/p", b"y", 1)])
        await events.expect(changed("/p"))


async def test_a_session_that_expires_while_disconnected_learns_it_on_reconnecting(memory: MemoryZooKeeper) -> None:
    async with memory.session() as store, memory.session() as other:
        events, old = Events(store), store.session_id
        await store.multi([Create("/e", ephemeral=True)])
        memory.disconnect(old)
        memory.expire(old)
        assert store.state is SessionState.SUSPENDED
        assert await other.read(["/e"]) == [None]
        memory.reconnect(old)

        await events.expect(SUSPENDED, EXPIRED, CONNECTED)
        assert store.session_id != old


async def test_a_crashed_holder_leaves_its_ephemerals_until_its_session_expires(memory: MemoryZooKeeper) -> None:
    heard: list[StoreEvent] = []
    async with memory.session() as other:
        async with memory.session() as store:
            session_id = store.session_id
            await store.multi([Create("/e", ephemeral=True)])
            store.subscribe(heard.append)
            memory.abandon(session_id)
            with pytest.raises(ConnectionLost):
                await store.read(["/e"])
        assert await other.children(["/"]) == [["e"]]
        await other.read(["/e"], watch=True)
        events = Events(other)
        memory.expire(session_id)

        await events.expect(deleted("/e"))
        assert heard == []
        assert store.state is SessionState.CLOSED
        with pytest.raises(KeyError):
            memory.expire(session_id)


@pytest.mark.parametrize("expired", [True, False])
async def test_a_paused_holder_is_told_when_it_goes_on(memory: MemoryZooKeeper, *, expired: bool) -> None:
    async with memory.session() as store, memory.session() as other:
        events, session_id = Events(store), store.session_id
        await store.multi([Create("/e", ephemeral=True)])
        await store.read(["/e"], watch=True)
        memory.abandon(session_id)
        await other.multi([Set("/e", b"missed", 0)])
        if expired:
            memory.expire(session_id)
        memory.reconnect(session_id)

        await events.expect(*([EXPIRED, CONNECTED] if expired else [CONNECTED]))
        assert await other.children(["/"]) == [[] if expired else ["e"]]
        assert (store.session_id == session_id) is not expired
    assert memory.tree.children("/") == []


async def test_a_connection_that_breaks_on_the_commit_loses_the_answer_only(memory: MemoryZooKeeper) -> None:
    async with memory.session() as store, memory.session() as other:
        session_id = store.session_id
        await other.read(["/a"], watch=True)
        other.subscribe(lambda _: memory.disconnect(session_id))
        with pytest.raises(ConnectionLost):
            await store.multi([Create("/a", b"done")])
        memory.reconnect(session_id)
        (znode,) = await store.read(["/a"])
        assert znode is not None


async def test_events_come_by_session_and_then_by_operation(memory: MemoryZooKeeper) -> None:
    heard: list[tuple[str, StoreEvent]] = []
    async with memory.session() as first, memory.session() as second:
        first.subscribe(lambda event: heard.append(("first", event)))
        second.subscribe(lambda event: heard.append(("second", event)))
        for store in (second, first):
            await store.read(["/b", "/a"], watch=True)
            await store.children(["/"], watch=True)
        await second.multi([Create("/b"), Create("/a")])

    seen = [created("/b"), children_of("/"), created("/a")]
    closed = [("second", CLOSED), ("first", CLOSED)]
    assert heard == [("first", event) for event in seen] + [("second", event) for event in seen] + closed


async def test_what_a_listener_causes_comes_after_what_it_was_called_for(memory: MemoryZooKeeper) -> None:
    heard: list[StoreEvent] = []
    async with memory.session() as store:
        session_id = store.session_id
        unsubscribe = store.subscribe(lambda _: memory.disconnect(session_id))
        store.subscribe(heard.append)
        await store.read(["/a"], watch=True)
        with pytest.raises(ConnectionLost):
            await store.multi([Create("/a")])
        unsubscribe()
    assert heard == [created("/a"), SUSPENDED, CLOSED]


async def test_the_end_of_a_session_is_an_event(memory: MemoryZooKeeper) -> None:
    heard: list[StoreEvent] = []
    async with memory.session() as store:
        store.subscribe(heard.append)
    assert heard == [SessionChanged(SessionState.CLOSED)]
