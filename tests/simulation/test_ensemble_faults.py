"""Faults of a session's host, as its holder, the other sessions and the tree see them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio

from simulator.store.ensemble import SimulatedEnsemble
from simulator.store.host import Moment
from tests.simulation.ensembles import LATENCY, LATEST, MOMENT, TIMEOUT, World, data, note, on_ensemble, outcome, replay
from tests.store.events import CONNECTED, EXPIRED, SUSPENDED, Events, changed, created, deleted
from transport.store.protocol import Create, Delete, SessionState, Set, StoreEvent

Fault = Callable[[SimulatedEnsemble, str], None]


# --- a connection that breaks -----------------------------------------------------------------------------------


@on_ensemble()
async def test_a_disconnected_holder_is_told_at_once_and_asks_in_vain(world: World) -> None:
    async with world.session("a") as store, trio.open_nursery() as nursery:
        events, became = Events(store), list[str]()
        nursery.start_soon(note, store.read(["/"]), became)
        await trio.sleep(LATENCY / 2)
        world.ensemble.disconnect("a")
        assert store.state is SessionState.SUSPENDED
        await events.expect(SUSPENDED)
        assert await outcome(store.multi([Create("/a")])) == "ConnectionLost"
        assert became == ["ConnectionLost"]


@on_ensemble()
async def test_who_comes_back_in_time_keeps_session_and_ephemerals_but_no_watch(world: World) -> None:
    async with world.session("a") as store, world.session("b") as other:
        session_id, events = store.session_id, Events(store)
        await store.multi([Create("/e", ephemeral=True), Create("/watched")])
        await store.read(["/watched"], watch=True)
        world.ensemble.disconnect("a")
        await other.multi([Set("/watched", b"x", 0)])
        world.ensemble.reconnect("a")
        await events.expect(SUSPENDED, CONNECTED)
        assert trio.current_time() < MOMENT
        await trio.sleep(LATEST)
        assert await data(store, "/e") == b""
        assert (store.session_id, store.state) == (session_id, SessionState.CONNECTED)

        await other.multi([Set("/watched", b"y", 1)])
        await store.read(["/watched"], watch=True)
        await other.multi([Set("/watched", b"z", 2)])
        await events.expect(changed("/watched"))


@on_ensemble(seeds=10)
async def test_who_stays_away_takes_the_session_for_expired_and_the_ensemble_does_so_about_then(world: World) -> None:
    async with world.session("a") as store, world.session("b") as other:
        old, events, others = store.session_id, Events(store), Events(other)
        await store.multi([Create("/e", ephemeral=True)])
        await other.read(["/e"], watch=True)
        start = trio.current_time()
        world.ensemble.disconnect("a")
        await events.expect(SUSPENDED, EXPIRED)
        assert trio.current_time() == start + TIMEOUT
        assert await outcome(store.read(["/"])) == "SessionExpired"
        await trio.sleep_until(start + LATEST + MOMENT)
        await others.expect(deleted("/e"))
        world.ensemble.reconnect("a")
        await events.expect(CONNECTED)
        assert store.session_id not in (old, other.session_id)
        assert world.commits[1:] == [("", [Delete("/e")])]


def test_a_late_reconnect_may_find_the_session_alive_or_gone() -> None:
    async def story(world: World) -> tuple[bool, bool]:
        async with world.session("a") as store:
            old, events = store.session_id, Events(store)
            await store.multi([Create("/e", ephemeral=True)])
            world.ensemble.disconnect("a")
            await events.expect(SUSPENDED, EXPIRED)
            world.ensemble.reconnect("a")
            await events.expect(CONNECTED)
            return store.session_id == old, await data(store, "/e") is not None

    assert {replay(story, seed) for seed in range(20)} == {(True, True), (False, False)}


@on_ensemble(seeds=10)
async def test_a_session_that_ends_without_its_holder_is_told_of_on_its_return(world: World) -> None:
    async with world.session("a") as store:
        old, events = store.session_id, Events(store)
        world.ensemble.disconnect("a")
        world.ensemble.expire("a")
        await trio.sleep(MOMENT)
        assert store.state is SessionState.SUSPENDED
        world.ensemble.reconnect("a")
        await events.expect(SUSPENDED, EXPIRED, CONNECTED)
        assert store.session_id != old
        assert await outcome(store.multi([Create("/a")])) == "done"


def test_of_what_was_under_way_when_the_connection_broke_the_first_may_still_arrive() -> None:
    async def story(world: World) -> int:
        async with world.session("a") as store, trio.open_nursery() as nursery:
            became: list[str] = []
            world.ensemble.set_latency("a", 1.0)
            for number in range(5):
                nursery.start_soon(note, store.multi([Create(f"/{number}")]), became)
                await trio.sleep(0.01)
            world.ensemble.disconnect("a")
            await trio.sleep(MOMENT)
            assert became == ["ConnectionLost"] * 5
            landed = world.ensemble.tree.children("/")
            assert landed == [str(number) for number in range(len(landed or []))]
            return len(landed)

    assert {replay(story, seed) for seed in range(40)} == set(range(6))


def test_what_arrives_late_of_a_session_that_moved_is_not_done() -> None:
    async def story(world: World) -> tuple[bool, bool]:
        async with world.session("a", 1) as store, trio.open_nursery() as nursery:
            server = store.server
            world.ensemble.set_latency("a", 10.0)
            nursery.start_soon(note, store.multi([Create("/a")]), [])
            await trio.sleep(LATENCY)
            world.ensemble.set_latency("a", LATENCY)
            world.ensemble.disconnect("a")
            world.ensemble.reconnect("a")
            await trio.sleep(20)
            return store.server is not server, world.data("/a") is not None

    assert {replay(story, seed, servers=2) for seed in range(20)} == {(False, False), (False, True), (True, False)}


@on_ensemble(seeds=20)
async def test_a_read_that_arrives_late_arms_no_watch_on_the_next_connection(world: World) -> None:
    async with world.session("a") as store, trio.open_nursery() as nursery:
        became: list[str] = []
        heard: list[StoreEvent] = []
        store.subscribe(heard.append)
        world.ensemble.set_latency("a", 10.0)
        nursery.start_soon(note, store.read(["/a"], watch=True), became)
        await trio.sleep(LATENCY)
        world.ensemble.set_latency("a", LATENCY)
        world.ensemble.disconnect("a")
        world.ensemble.reconnect("a")
        await trio.sleep(20)  # long enough for the read to arrive, if it does
        assert became == ["ConnectionLost"]
        world.ensemble.commit_by_hand([Create("/a")])
        await trio.sleep(MOMENT)
        assert heard == [SUSPENDED, CONNECTED]


@on_ensemble()
async def test_who_armed_a_watch_on_a_connection_that_broke_right_then_is_told(world: World) -> None:
    world.ensemble.set_latency("a", 0.0)
    for watch in (False, True):
        async with world.session("a") as store, trio.open_nursery() as nursery:
            became: list[str] = []
            world.ensemble.freeze("a")
            nursery.start_soon(note, store.read(["/"], watch=watch), became)
            await trio.sleep(LATENCY)
            world.ensemble.thaw("a")
            world.ensemble.disconnect("a")
            await trio.sleep(LATENCY)
            assert became == ["ConnectionLost" if watch else "done"]
            world.ensemble.reconnect("a")
            await trio.sleep(MOMENT)


@on_ensemble()
async def test_an_event_under_way_when_the_connection_breaks_is_lost(world: World) -> None:
    async with world.session("a") as store, world.session("b") as other:
        await store.read(["/a"], watch=True)
        heard: list[StoreEvent] = []
        store.subscribe(heard.append)
        world.ensemble.set_latency("a", 1.0)
        await other.multi([Create("/a")])
        world.ensemble.disconnect("a")
        await trio.sleep(MOMENT)
        assert heard == [SUSPENDED]


@on_ensemble(seeds=10)
async def test_an_attempt_to_reconnect_that_arrives_late_takes_no_session_from_a_later_one(world: World) -> None:
    async with world.session("a") as store:
        for latency in (10.0, LATENCY):
            world.ensemble.disconnect("a")
            world.ensemble.set_latency("a", latency)
            world.ensemble.reconnect("a")
            await trio.sleep(MOMENT / 2 + LATENCY * 4)
        await trio.sleep(20)
        with trio.fail_after(MOMENT):
            await store.read(["/"])


# --- a session that expires -------------------------------------------------------------------------------------


@on_ensemble(servers=2, seeds=10)
async def test_a_holder_whose_session_is_ended_loses_it_and_gets_another(world: World) -> None:
    world.ensemble.set_lag(2, 1.0)
    async with world.session("a", 2) as store, world.session("b", 1) as other:
        await store.multi([Create("/e", ephemeral=True), Create("/p")])
        await store.read(["/p"], watch=True)
        await other.read(["/e"], watch=True)
        old, events, others = store.session_id, Events(store), Events(other)
        world.ensemble.expire("a")
        assert world.commits[-1] == ("", [Delete("/e")])
        await others.expect(deleted("/e"))
        await events.expect(SUSPENDED)
        assert await outcome(store.multi([Create("/late")])) == "ConnectionLost"
        await events.expect(EXPIRED)
        assert store.session_id == old
        assert await outcome(store.multi([Create("/late")])) == "SessionExpired"
        await events.expect(CONNECTED)
        assert store.session_id not in (old, other.session_id)
        await other.multi([Set("/p", b"x", 0)])
        await store.read(["/e"], watch=True)
        assert await outcome(store.multi([Create("/e", ephemeral=True)])) == "done"
        await events.expect(created("/e"))
        assert await other.children(["/"]) == [["e", "p"]]
        world.ensemble.expire("b")
        world.ensemble.expire("b")


@on_ensemble()
async def test_a_commit_that_arrives_after_the_end_of_its_session_is_not_done(world: World) -> None:
    async with world.session("a") as store, trio.open_nursery() as nursery:
        became: list[str] = []
        nursery.start_soon(note, store.multi([Create("/late")]), became)
        await trio.sleep(LATENCY / 4)
        world.ensemble.expire("a")
        await trio.sleep(MOMENT)
        assert became == ["ConnectionLost"]
        assert world.data("/late") is None


# --- a commit whose outcome is not known ------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [SimulatedEnsemble.disconnect, SimulatedEnsemble.expire, SimulatedEnsemble.cut])
@pytest.mark.parametrize("when", ["before", "after"])
@on_ensemble(servers=2)
async def test_a_fault_right_around_a_commit_leaves_its_outcome_unknown(
    world: World, fault: Fault, when: Moment
) -> None:
    async with world.session("b") as other, world.session("a") as store:
        await other.multi([Create("/other")])
        world.ensemble.on_next_multi("a", lambda: fault(world.ensemble, "a"), when=when)
        await other.multi([Create("/others")])
        assert await outcome(store.multi([Create("/a")])) == "ConnectionLost"
        assert (world.data("/a") is not None) is (when == "after")
        world.ensemble.reconnect("a")
        await trio.sleep(MOMENT)
        became = await outcome(store.multi([Create("/b")]))
        assert became == ("ConnectionLost" if fault is SimulatedEnsemble.cut else "done")


@on_ensemble()
async def test_a_commit_may_be_done_although_nobody_waits_for_it_any_more(world: World) -> None:
    async with world.session("a") as store:
        with trio.move_on_after(LATENCY / 4) as scope:
            await store.multi([Create("/a")])
        assert scope.cancelled_caught
        assert world.data("/a") is None
        await trio.sleep(MOMENT)
        assert world.data("/a") == b""
        assert await data(store, "/a") == b""
