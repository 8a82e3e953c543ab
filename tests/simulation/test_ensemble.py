"""The simulated ensemble without faults of hosts: answers, their times, and the effect of lagging followers."""

from __future__ import annotations

import pytest
import trio

from tests.simulation.ensembles import LATENCY, MOMENT, World, data, on_ensemble, outcome, replay
from tests.store.events import CONNECTED, EXPIRED, SUSPENDED, Events, changed, created
from transport.store.protocol import Conflict, Create, Delete, MetadataStore, Set, StoreEvent, StoreUnavailable
from transport.store.tree import Access

LAG = 15.0


# --- time -------------------------------------------------------------------------------------------------------


@on_ensemble(servers=2)
async def test_an_answer_takes_a_round_trip_of_its_host(world: World) -> None:
    async with world.session("slow") as slow, world.session("fast") as fast:
        world.ensemble.set_latency("slow", 10.0)
        start = trio.current_time()
        await fast.read(["/"])
        assert LATENCY <= trio.current_time() - start <= 3 * LATENCY
        start = trio.current_time()
        await slow.read(["/"])
        assert 10.0 <= trio.current_time() - start <= 30.0
        world.ensemble.set_latency("slow", 0.0)
        start = trio.current_time()
        await slow.multi([Create("/a")])
        assert trio.current_time() == start


@on_ensemble(servers=2)
async def test_timestamps_are_those_of_the_leaders_clock_on_every_server(world: World) -> None:
    world.ensemble.set_lag(2, LAG)
    async with world.session("a", 1) as ahead, world.session("b", 2) as behind:
        await ahead.multi([Create("/a")])
        now_ms = 1_700_000_000_000 + round(trio.current_time() * 1000)
        await trio.sleep(LAG)
        [theirs], [ours] = await behind.read(["/a"]), await ahead.read(["/a"])
    assert theirs == ours
    assert ours is not None
    assert 0 <= now_ms - ours.stat.ctime_ms <= LATENCY * 1500 + 1


@on_ensemble(servers=2)
async def test_a_host_that_cannot_reach_the_ensemble_gets_no_session(world: World) -> None:
    world.ensemble.disconnect("a")
    with pytest.raises(StoreUnavailable, match=r"^ZooKeeper opened no session for a within 15 s$"):
        async with world.session("a"):
            pass


@on_ensemble(servers=2)
async def test_who_begins_while_cut_off_gets_a_session_as_soon_as_that_ends(world: World) -> None:
    world.ensemble.disconnect("a")
    async with trio.open_nursery() as nursery:

        async def reconnect() -> None:
            await trio.sleep(10)
            world.ensemble.reconnect("a")

        nursery.start_soon(reconnect)
        async with world.session("a"):
            assert 10 < trio.current_time() < 10 + MOMENT


# --- order ------------------------------------------------------------------------------------------------------


@on_ensemble(servers=2, seeds=10)
async def test_an_event_comes_before_the_first_answer_that_shows_what_it_announces(world: World) -> None:
    world.ensemble.set_lag(2, LATENCY)
    async with world.session("reader", 2) as reader, world.session("writer", 1) as writer:
        await reader.multi([Create("/a", b"0")])
        heard: list[StoreEvent] = []
        reader.subscribe(heard.append)

        async def write() -> None:
            for number in range(50):
                await writer.multi([Set("/a", str(number + 1).encode(), number)])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            before, seen = await data(reader, "/a", watch=True), 0
            while before != b"50":
                now = await data(reader, "/a", watch=True)
                seen += now != before
                assert len(heard) >= seen
                before = now
    assert seen > 10


@on_ensemble(seeds=5)
async def test_requests_take_effect_in_the_order_in_which_they_were_sent(world: World) -> None:
    async with world.session("a") as store, trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(store.multi, [Create(f"/{number}")])
            await trio.sleep(LATENCY / 100)
    assert world.commits[:-1] == [("a", [Create(f"/{number}")]) for number in range(50)]


@on_ensemble(servers=2)
async def test_what_one_session_asks_is_answered_in_order(world: World) -> None:
    world.ensemble.set_lag(2, LAG)
    async with world.session("a", 2) as store, trio.open_nursery() as nursery:
        nursery.start_soon(store.multi, [Create("/a", b"mine")])
        await trio.sleep(MOMENT)
        assert world.data("/a") == b"mine"
        # The read waits for the earlier write, although its server could answer at once.
        assert await data(store, "/a") == b"mine"
        assert trio.current_time() >= LAG


# --- followers that lag -----------------------------------------------------------------------------------------


@on_ensemble(servers=2)
async def test_a_lagging_follower_reads_what_was_and_fires_late(world: World) -> None:
    async with world.session("a", 1) as ahead, world.session("b", 2) as behind:
        await ahead.multi([Create("/a", b"old")])
        world.ensemble.set_lag(2, LAG)
        assert await data(behind, "/a", watch=True) == b"old"
        events, start = Events(behind), trio.current_time()
        await ahead.multi([Set("/a", b"new", 0)])
        await ahead.multi([Create("/b")])
        assert await data(ahead, "/a") == b"new"
        assert await data(behind, "/a") == b"old"
        assert await behind.children(["/", "/b"]) == [["a"], None]

        await events.expect(changed("/a"))
        assert LAG <= trio.current_time() - start <= LAG + MOMENT
        assert await data(behind, "/a") == b"new"


@on_ensemble(servers=2)
async def test_a_lagging_follower_applies_what_was_permitted_before_an_acl_forbade_it(world: World) -> None:
    async with world.session("a", 1) as ahead, world.session("b", 2) as behind:
        await ahead.multi([Create("/a", b"old")])
        world.ensemble.set_lag(2, LAG)
        await ahead.multi([Set("/a", b"new", 0)])
        world.ensemble.allow("/a", Access.READ)
        await trio.sleep(LAG + MOMENT)
        assert await data(behind, "/a") == b"new"


@on_ensemble(servers=2)
async def test_who_writes_through_a_lagging_follower_reads_what_it_wrote(world: World) -> None:
    world.ensemble.set_lag(2, LAG)
    async with world.session("a", 1) as ahead, world.session("b", 2) as behind:
        await ahead.multi([Create("/a")])
        start = trio.current_time()
        await behind.multi([Create("/b")])
        assert trio.current_time() >= start + LAG
        assert await behind.children(["/"]) == [["a", "b"]]


@on_ensemble(servers=2)
async def test_a_conflict_tells_nothing_that_is_not_read_afterwards(world: World) -> None:
    async with world.session("a", 1) as ahead, world.session("b", 2) as behind:
        await ahead.multi([Create("/a", b"old")])
        world.ensemble.set_lag(2, LAG)
        await behind.read(["/a"], watch=True)
        heard: list[StoreEvent] = []
        behind.subscribe(heard.append)
        await ahead.multi([Set("/a", b"new", 0)])
        with pytest.raises(Conflict):
            await behind.multi([Set("/a", b"late", 0)])
        assert heard == [changed("/a")]
        assert await data(behind, "/a") == b"new"


@on_ensemble(servers=2)
async def test_a_new_session_reads_all_that_was_committed_before_it_began(world: World) -> None:
    async with world.session("a", 1) as ahead:
        world.ensemble.set_lag(2, 5.0)
        await ahead.multi([Create("/a")])
        async with world.session("b", 2) as behind:
            assert trio.current_time() >= 5.0
            assert await behind.children(["/"]) == [["a"]]


@on_ensemble(servers=2)
async def test_a_follower_that_no_longer_lags_catches_up_at_once(world: World) -> None:
    async with world.session("a", 1) as ahead, world.session("b", 2) as behind:
        world.ensemble.set_lag(2, 1_000_000.0)
        for number in range(5):
            await ahead.multi([Create(f"/{number}")])
        world.ensemble.set_lag(2, 0.0)
        assert await behind.children(["/"]) == [["0", "1", "2", "3", "4"]]
        await ahead.multi([Create("/5")])
        assert await data(behind, "/5") == b""


def test_the_leader_never_lags() -> None:
    with pytest.raises(ValueError, match=r"^server 1 is the leader and never lags$"):
        World(servers=2).ensemble.set_lag(1, 1.0)


@on_ensemble(servers=3, seeds=20)
async def test_who_moves_to_another_server_never_goes_back_in_time(world: World) -> None:
    async with world.session("a") as store, world.session("b", 1) as ahead:
        await ahead.multi([Create("/a")])
        seen, servers = b"", {store.server: None}
        for number in range(20):
            for server in (2, 3):
                world.ensemble.set_lag(server, LAG if number % 4 < server else 0.0)
            await ahead.multi([Set("/a", b"%03d" % number, number)])
            world.ensemble.disconnect("a")
            world.ensemble.reconnect("a")
            await trio.sleep(MOMENT)
            now = await data(store, "/a") or b""
            assert now >= seen
            seen, servers[store.server] = now, None
        assert len(servers) > 1


@pytest.mark.parametrize("seen_in", ["answer", "event"])
@on_ensemble(servers=3, seeds=5)
async def test_who_has_seen_something_moves_to_no_server_that_has_not(world: World, seen_in: str) -> None:
    async with world.session("a", 1) as store, world.session("b", 1) as other:
        await store.read(["/a"], watch=seen_in == "event")
        world.ensemble.set_lag(2, 1000.0)
        world.ensemble.set_lag(3, 1000.0)
        await other.multi([Create("/a")])
        await trio.sleep(LATENCY * 2)
        if seen_in == "answer":
            await store.read(["/a"])
        world.ensemble.disconnect("a")
        world.ensemble.reconnect("a")
        await trio.sleep(MOMENT)
        assert await data(store, "/a") == b""


# --- the rest ---------------------------------------------------------------------------------------------------


@on_ensemble(servers=2)
async def test_who_watches_the_ensemble_sees_each_commit_when_it_takes_effect(world: World) -> None:
    async with world.session("a") as store:
        await store.multi([Create("/a")])
        await store.multi([Create("/e", ephemeral=True), Set("/a", b"x", 0)])
        with pytest.raises(Conflict):
            await store.multi([Create("/a")])
        world.ensemble.commit_by_hand([Delete("/a")])
    assert world.commits == [
        ("a", [Create("/a")]),
        ("a", [Create("/e", ephemeral=True), Set("/a", b"x", 0)]),
        ("admin", [Delete("/a")]),
        ("", [Delete("/e")]),
    ]


@on_ensemble(servers=2)
async def test_what_is_done_by_hand_fires_watches_and_may_be_refused(world: World) -> None:
    async with world.session("a", 1) as store:
        await store.read(["/a"], watch=True)
        events = Events(store)
        committed = world.ensemble.commit_by_hand([Create("/a")])
        assert committed.results == ("/a",)
        await events.expect(created("/a"))
        with pytest.raises(Conflict):
            world.ensemble.commit_by_hand([Create("/a")])


History = list[tuple[float, str, object]]


async def disturbed(world: World) -> History:
    """Let two hosts write while they are disturbed, and return everything that they see."""
    history: History = []

    async def work(host: str, store: MetadataStore) -> None:
        for number in range(60):
            path = f"/{number % 7}"
            await trio.sleep(0.1)
            became = await outcome(store.read(["/a", path], watch=True))
            history.append((trio.current_time(), host, became))
            became = await outcome(store.multi([Create(path, ephemeral=number % 2 > 0)]))
            if became == "Conflict":
                became = await outcome(store.multi([Delete(path)]))
            history.append((trio.current_time(), host, became))

    async with world.session("a") as a, world.session("b") as b, trio.open_nursery() as nursery:
        for host, store in (("a", a), ("b", b)):
            store.subscribe(lambda event, host=host: history.append((trio.current_time(), host, event)))  # type: ignore[misc]
            nursery.start_soon(work, host, store)
        world.ensemble.set_lag(2, 0.2)
        await trio.sleep(1)
        world.ensemble.disconnect("a")
        await trio.sleep(1)
        world.ensemble.expire("b")
        world.ensemble.reconnect("a")
        await trio.sleep(1)
        world.ensemble.freeze("a")
        await trio.sleep(9)
        world.ensemble.thaw("a")
    return history


def test_the_same_seed_gives_the_same_history_and_another_seed_another_one() -> None:
    histories = [replay(disturbed, seed, servers=2) for seed in (1, 1, 2)]
    assert histories[0] == histories[1]
    assert histories[0] != histories[2]
    kinds = {what for _, _, what in histories[0]}
    assert {"done", "ConnectionLost", SUSPENDED, EXPIRED, CONNECTED} <= kinds
