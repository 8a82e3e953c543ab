"""An ensemble that loses its leader for a while, and one that is slow to commit."""

from __future__ import annotations

import pytest
import trio

from tests.simulation.ensembles import LATENCY, LATEST, MOMENT, TIMEOUT, World, data, note, on_ensemble, outcome
from tests.store.events import CONNECTED, EXPIRED, SUSPENDED, Events
from transport.store.protocol import Create, SessionState, StoreUnavailable


@on_ensemble(servers=3)
async def test_without_a_quorum_nothing_is_answered_and_nothing_is_lost(world: World) -> None:
    async with world.session("a") as store:
        await store.multi([Create("/kept")])
        session_id, events = store.session_id, Events(store)
        world.ensemble.lose_quorum()
        await events.expect(SUSPENDED)
        assert await outcome(store.multi([Create("/refused")])) == "ConnectionLost"
        await trio.sleep(MOMENT)
        assert store.state is SessionState.SUSPENDED
        world.ensemble.regain_quorum()
        await events.expect(CONNECTED)
        assert (await data(store, "/kept"), await data(store, "/refused")) == (b"", None)
        assert store.session_id == session_id


@on_ensemble(seeds=10)
async def test_no_commit_takes_effect_without_a_quorum_not_even_one_in_transit(world: World) -> None:
    async with world.session("a") as store, trio.open_nursery() as nursery:
        became = list[str]()
        nursery.start_soon(note, store.multi([Create("/in-transit")]), became)
        await trio.sleep(LATENCY / 10)
        world.ensemble.lose_quorum()
        await trio.sleep(MOMENT)
        assert (became, world.data("/in-transit")) == (["ConnectionLost"], None)


@on_ensemble()
async def test_no_session_ends_without_a_quorum_and_all_have_their_timeout_after_it(world: World) -> None:
    async with world.session("a") as store, world.session("b") as other:
        for of, path in ((store, "/a"), (other, "/b")):
            await of.multi([Create(path, ephemeral=True)])
        events = Events(store)
        world.ensemble.lose_quorum()
        world.ensemble.disconnect("b")
        world.ensemble.expire("a")
        await trio.sleep(10 * TIMEOUT)
        assert (world.data("/a"), world.data("/b")) == (b"", b"")
        await events.expect(SUSPENDED, EXPIRED)
        world.ensemble.mend()
        world.ensemble.disconnect("b")
        await events.expect(CONNECTED)
        await trio.sleep(LATEST)
        assert (world.data("/a"), world.data("/b")) == (b"", None)


@on_ensemble()
async def test_who_starts_without_a_quorum_waits_for_it_or_gives_up(world: World) -> None:
    world.ensemble.lose_quorum()
    with pytest.raises(StoreUnavailable):
        await _open(world)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_regain, world)
        await _open(world)


async def _open(world: World) -> None:
    async with world.session("a"):
        pass


async def _regain(world: World) -> None:
    await trio.sleep(MOMENT)
    world.ensemble.regain_quorum()


@on_ensemble(servers=3)
async def test_slow_commits_do_not_delay_reads_of_others_but_those_behind_them(world: World) -> None:
    async with world.session("a") as store, world.session("b") as other, trio.open_nursery() as nursery:
        world.ensemble.set_commit_seconds(5.0)
        start, became = trio.current_time(), list[str]()
        nursery.start_soon(note, store.multi([Create("/slow")]), became)
        await trio.sleep(LATENCY / 10)
        assert await data(other, "/slow") is None
        assert trio.current_time() - start < 1
        assert await data(store, "/slow") == b""
        assert trio.current_time() - start > 5
        await trio.sleep(LATENCY)
        assert became == ["done"]
