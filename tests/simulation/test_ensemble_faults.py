"""What befalls the host of a session, and what its holder, the others and the tree see of that."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from controller.simulation.connection import Moment
from controller.simulation.ensemble import SimulatedEnsemble
from tests.simulation.ensembles import (
    EARLIEST,
    LATENCY,
    LATEST,
    MOMENT,
    TIMEOUT,
    World,
    data,
    note,
    on_ensemble,
    outcome,
    replay,
)
from tests.store.events import CLOSED, CONNECTED, EXPIRED, SUSPENDED, Events, changed, created, deleted
from transport.store import Create, Delete, SessionExpired, SessionState, Set, StoreEvent

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


# --- a process that stands still --------------------------------------------------------------------------------


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
