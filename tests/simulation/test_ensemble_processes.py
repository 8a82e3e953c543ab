"""Processes that pause or die while they hold a session, and the fate of the session."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.simulation.ensembles import EARLIEST, LATENCY, LATEST, MOMENT, World, data, note, on_ensemble, outcome
from tests.store.events import CLOSED, CONNECTED, EXPIRED, SUSPENDED, Events, created, deleted
from transport.store.protocol import Create, SessionExpired, SessionState, StoreEvent

# --- a process that pauses --------------------------------------------------------------------------------------


@on_ensemble()
async def test_a_short_pause_delays_what_is_sent_and_what_comes(world: World) -> None:
    async with world.session("a") as store, world.session("b") as other, trio.open_nursery() as nursery:
        became: list[str] = []
        heard: list[StoreEvent] = []
        await store.read(["/a"], watch=True)
        store.subscribe(heard.append)
        world.ensemble.freeze("a")
        nursery.start_soon(note, store.multi([Create("/b")]), became)
        await other.multi([Create("/a")])
        await trio.sleep(EARLIEST - MOMENT)
        assert (world.data("/b"), became, heard) == (None, [], [])
        world.ensemble.thaw("a")
        assert heard == [created("/a")]
        await trio.sleep(MOMENT)
        assert (world.data("/b"), became) == (b"", ["done"])
        await trio.sleep(LATEST)
        assert (store.state, heard) == (SessionState.CONNECTED, [created("/a")])


@on_ensemble(seeds=10)
async def test_who_wakes_after_its_session_has_ended_does_nothing_more_in_it(world: World) -> None:
    async with world.session("a") as store, world.session("b") as other, trio.open_nursery() as nursery:
        became: list[str] = []
        await store.multi([Create("/e", ephemeral=True)])
        old, events = store.session_id, Events(store)
        start = trio.current_time()
        world.ensemble.freeze("a")
        nursery.start_soon(note, store.multi([Create("/late")]), became)
        await trio.sleep_until(start + EARLIEST)
        assert await data(other, "/e") == b""
        await trio.sleep_until(start + LATEST)
        assert await data(other, "/e") is None
        assert (store.state, store.session_id) == (SessionState.CONNECTED, old)
        world.ensemble.thaw("a")
        await events.expect(SUSPENDED, EXPIRED, CONNECTED)
        assert became == ["ConnectionLost"]
        assert world.data("/late") is None
        assert store.session_id != old


@on_ensemble()
async def test_who_is_paused_while_cut_off_learns_the_time_when_it_wakes(world: World) -> None:
    async with world.session("a") as store:
        heard: list[StoreEvent] = []
        store.subscribe(heard.append)
        world.ensemble.disconnect("a")
        world.ensemble.freeze("a")
        await trio.sleep(LATEST + MOMENT)
        assert heard == [SUSPENDED]
        world.ensemble.reconnect("a")
        world.ensemble.thaw("a")
        await trio.sleep(MOMENT)
        assert heard == [SUSPENDED, EXPIRED, CONNECTED]


@on_ensemble()
async def test_who_ends_while_paused_leaves_its_session_to_its_timeout(world: World) -> None:
    async with world.session("a") as store:
        await store.multi([Create("/e", ephemeral=True)])
        world.ensemble.freeze("a")
        start = trio.current_time()
    assert trio.current_time() < start + EARLIEST
    assert world.data("/e") == b""
    async with world.session("a") as store:
        await trio.sleep_until(start + LATEST)
        assert await data(store, "/e") is None


@on_ensemble(seeds=5)
async def test_who_is_paused_while_its_session_begins_is_not_heard_of_either(world: World) -> None:
    world.ensemble.set_latency("a", 0.5)
    async with trio.open_nursery() as nursery:

        async def pause() -> None:
            await trio.sleep(0.1)
            world.ensemble.freeze("a")
            await trio.sleep(LATEST + MOMENT)
            assert world.commits == [("", [])]
            world.ensemble.thaw("a")

        nursery.start_soon(pause)
        async with world.session("a") as store:
            await trio.sleep(4 * MOMENT)
            assert (store.session_id, store.state) == (2, SessionState.CONNECTED)


# --- a process that dies ----------------------------------------------------------------------------------------


@on_ensemble(seeds=10)
async def test_who_dies_is_told_nothing_and_nothing_of_it_arrives(world: World) -> None:
    heard: list[StoreEvent] = []
    became: list[str] = []
    async with world.session("b") as other:
        async with world.session("a") as store, trio.open_nursery() as nursery:
            await store.multi([Create("/e", ephemeral=True)])
            store.subscribe(heard.append)
            for number in range(3):
                nursery.start_soon(note, store.multi([Create(f"/{number}")]), became)
            await trio.sleep(LATENCY / 4)
            start = trio.current_time()
            world.ensemble.cut("a")
            assert await outcome(store.multi([Create("/late")])) == "ConnectionLost"
            await wait_all_tasks_blocked()
            assert became == ["ConnectionLost"] * 3
            assert trio.current_time() == start
        assert trio.current_time() == start
        assert store.state is SessionState.CLOSED
        with pytest.raises(SessionExpired):
            await store.read(["/"])
        await trio.sleep_until(start + EARLIEST)
        assert await other.children(["/"]) == [["e"]]
        await trio.sleep_until(start + LATEST)
        assert await other.children(["/"]) == [[]]
    assert heard == []
    assert [host for host, _ in world.commits] == ["a", "", ""]


@on_ensemble()
async def test_a_process_that_is_started_again_has_a_session_of_its_own(world: World) -> None:
    async with world.session("a") as dead:
        await dead.multi([Create("/e", ephemeral=True)])
        world.ensemble.freeze("a")
        world.ensemble.cut("a")
    async with world.session("a") as store:
        events = Events(store)
        assert store.session_id != dead.session_id
        assert await data(store, "/e", watch=True) == b""
        await events.expect(deleted("/e"))
        assert trio.current_time() > EARLIEST
        world.ensemble.disconnect("a")
        world.ensemble.reconnect("a")
        await events.expect(SUSPENDED, CONNECTED)
    await events.expect(CLOSED)


@on_ensemble()
async def test_a_host_without_a_session_may_be_struck_too(world: World) -> None:
    for fault in ("cut", "freeze", "thaw", "disconnect", "expire", "reconnect"):
        getattr(world.ensemble, fault)("a")
    async with world.session("a") as store:
        assert store.state is SessionState.CONNECTED


@on_ensemble(servers=2)
async def test_mending_ends_what_goes_wrong(world: World) -> None:
    async with world.session("a", 2) as store, world.session("b", 1) as other:
        world.ensemble.disconnect("a")
        world.ensemble.set_lag(2, 1000.0)
        world.ensemble.set_latency("a", 1000.0)
        world.ensemble.on_next_multi("a", lambda: world.ensemble.cut("a"), when="before")
        await other.multi([Create("/a")])
        world.ensemble.mend()
        await trio.sleep(MOMENT)
        start = trio.current_time()
        assert await data(store, "/a") == b""
        assert await outcome(store.multi([Create("/b")])) == "done"
        assert trio.current_time() < start + MOMENT


@on_ensemble()
async def test_who_is_cut_off_at_its_end_leaves_its_session_to_its_timeout(world: World) -> None:
    async with world.session("a") as store:
        await store.multi([Create("/e", ephemeral=True)])
        world.ensemble.disconnect("a")
        start = trio.current_time()
    assert trio.current_time() == start
    await trio.sleep_until(start + EARLIEST)
    assert world.data("/e") == b""
    await trio.sleep_until(start + LATEST)
    assert world.data("/e") is None
