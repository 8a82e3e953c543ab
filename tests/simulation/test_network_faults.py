"""The network of simulations: the effect of each fault."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio
import trio.testing

from simulator.network.network import Link
from simulator.network.pipe import MAX_CHUNKS
from tests.simulation.networks import PORT, SOON, Net, expect_none, hangs, now, received

# Partitions.


async def test_a_block_holds_one_direction_and_delivers_in_order_when_it_ends(world: Net) -> None:
    a, b = await world.pair()
    world.network.set_link("a", "b", Link(latency=1.0))
    await a.send_all(b"1")
    await trio.sleep(2)
    await a.send_all(b"2")
    world.network.block("a", "b")
    await a.send_all(b"3")
    await b.send_all(b"free")
    assert await a.receive_some() == b"free"
    assert await b.receive_some() == b"1"  # it had arrived before the block
    assert await hangs(b.receive_some)
    start = now()
    world.network.unblock("a", "b")
    assert await received(b, 2) == [(start + 1, b"2"), (start + 1, b"3")]


async def test_a_receiver_that_waits_is_held_by_a_block_and_woken_after_it(world: Net) -> None:
    a, b = await world.pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(b.receive_some)
        await a.send_all(b"x")
        await trio.sleep(SOON)
        world.network.block("a", "b")
        await trio.sleep(100)
        assert world.deliveries == []
        world.network.unblock("a", "b")
    assert world.deliveries[0][0] == pytest.approx(100.003)


async def test_what_a_blocked_sender_sends_is_bounded(world: Net) -> None:
    a, _ = await world.pair()
    world.network.block("a", "b")
    for _ in range(MAX_CHUNKS):
        await a.send_all(b"x")
    assert await hangs(partial(a.send_all, b"x"))


async def test_nothing_under_way_passes_a_block_however_fast_its_link(world: Net) -> None:
    a, b = await world.pair()
    for chunk, latency in ((b"slow", 5.0), (b"slow too", 6.0), (b"fast", 1.0)):
        world.network.set_link("a", "b", Link(latency=latency))
        await a.send_all(chunk)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(expect_none, b, 10.0)
        await trio.sleep(2)
        world.network.block("a", "b")
    start = now()
    world.network.unblock("a", "b")
    assert await received(b, 3) == [(start + 1, b"slow"), (start + 1, b"slow too"), (start + 1, b"fast")]


async def test_what_leaves_behind_a_block_may_arrive_before_it_was_due_at_first(world: Net) -> None:
    a, b = await world.pair()
    world.network.set_link("a", "b", Link(latency=1000.0))
    await a.send_all(b"x")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(b.receive_some)
        await trio.sleep(1)
        world.network.block("a", "b")
        world.network.set_link("a", "b", Link(latency=1.0))
        world.network.unblock("a", "b")
    assert world.deliveries[0][0] == pytest.approx(2.002)


async def test_an_end_under_way_is_held_too_and_one_that_has_arrived_stays(world: Net) -> None:
    a, b = await world.pair()
    await a.aclose()
    world.network.block("a", "b")
    assert await hangs(b.receive_some)
    world.network.unblock("a", "b")
    await trio.sleep(1)
    start = now()
    world.network.unblock("a", "b")
    assert await b.receive_some() == b""
    assert now() == start


async def test_a_close_behind_a_block_is_seen_when_it_ends(world: Net) -> None:
    a, b = await world.pair()
    world.network.block("a", "b")
    await a.send_all(b"bye")
    await a.aclose()
    assert await hangs(b.receive_some)
    await b.send_all(b"x")
    world.network.unblock("a", "b")
    assert [await b.receive_some(), await b.receive_some()] == [b"bye", b""]


# Broken connections.


async def test_broken_connections_lose_what_was_under_way_at_both_ends(world: Net) -> None:
    pairs = [await world.pair(), await world.pair()]
    other = await world.network.at("c").connect("b", PORT)
    for a, b in pairs:
        await a.send_all(b"request")
        await b.send_all(b"answer")
    assert world.network.break_connections("b", "a") == 2
    for end in (end for pair in pairs for end in pair):
        for use in (end.receive_some, end.receive_some, partial(end.send_all, b"x")):
            with pytest.raises(trio.BrokenResourceError):
                await use()
        await end.aclose()
        with pytest.raises(trio.ClosedResourceError):
            await end.receive_some()
    assert world.network.break_connections("a", "b") == 0
    await other.send_all(b"still there")
    assert await world.accepted[-1].receive_some() == b"still there"
    await world.pair()


async def test_a_break_is_seen_by_those_who_wait_even_where_blocked(world: Net) -> None:
    a, b = await world.pair()
    world.network.block("a", "b")
    for _ in range(MAX_CHUNKS):
        await a.send_all(b"x")

    async def expect_break(use: Callable[[], Awaitable[object]]) -> None:
        with pytest.raises(trio.BrokenResourceError):
            await use()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(expect_break, a.receive_some)
        nursery.start_soon(expect_break, b.receive_some)
        nursery.start_soon(expect_break, partial(a.send_all, b"y"))
        await trio.sleep(SOON)
        world.network.break_connections("a", "b")


async def test_connections_that_fall_silent_lose_all_that_is_sent_and_tell_nobody(world: Net) -> None:
    a, b = await world.pair()
    await a.send_all(b"under way")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(expect_none, a, 10.0)
        nursery.start_soon(expect_none, b, 10.0)
        await trio.sleep(SOON)
        assert world.network.silence_connections("b", "a") == 1
        await a.send_all(b"lost")
        await b.send_all(b"lost, too")
    await b.aclose()
    world.network.break_connections("a", "b")
    await expect_none(a, 10.0)
    assert world.network.silence_connections("a", "b") == 0
    c, d = await world.pair()
    await c.send_all(b"whole")
    assert await d.receive_some() == b"whole"


# Processes that die.


async def test_nothing_leaves_a_host_that_was_cut_and_its_peers_see_the_break(world: Net) -> None:
    a, b = await world.pair()
    late = world.network.at("b")
    await b.send_all(b"left in time")
    world.network.cut("b")
    for use in (b.receive_some, partial(b.send_all, b"from a finally"), b.wait_send_all_might_not_block):
        with pytest.raises(trio.BrokenResourceError):
            await use()
    with pytest.raises(OSError, match="b was cut off"):
        await late.connect("a", PORT)
    with pytest.raises(OSError, match="b was cut off"):
        await world.network.at("b").connect("a", PORT)
    with pytest.raises(OSError, match="b was cut off"):
        await late.serve(trio.aclose_forcefully, "b", 0)
    await b.aclose()
    assert await a.receive_some() == b"left in time"
    with pytest.raises(trio.BrokenResourceError):
        await a.receive_some()
    with pytest.raises(trio.BrokenResourceError):
        await a.send_all(b"x")
    with pytest.raises(ConnectionRefusedError):
        await world.pair()
    assert [entry[-1] for entry in world.deliveries] == [b"left in time"]


async def test_those_who_wait_at_a_host_see_at_once_that_it_was_cut(world: Net) -> None:
    a, b = await world.pair()
    for _ in range(MAX_CHUNKS):
        await b.send_all(b"x")

    async def expect_break(use: Callable[[], Awaitable[object]]) -> None:
        with pytest.raises(trio.BrokenResourceError):
            await use()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(expect_break, b.receive_some)
        nursery.start_soon(expect_break, partial(b.send_all, b"y"))
        await trio.sleep(SOON)
        start = now()
        world.network.cut("b")
        world.network.cut("b")
    assert now() == start
    assert [chunk for _, chunk in await received(a, MAX_CHUNKS)] == [b"x"] * MAX_CHUNKS
    await expect_break(a.receive_some)


async def test_a_peer_behind_a_block_sees_the_break_when_it_ends_and_nothing_that_was_held(world: Net) -> None:
    a, b = await world.pair()
    world.network.block("b", "a")
    await b.send_all(b"held")
    world.network.cut("b")
    assert await hangs(a.receive_some)
    await a.send_all(b"to nobody")
    world.network.restore("b")
    world.network.unblock("b", "a")
    with pytest.raises(trio.BrokenResourceError):
        await a.receive_some()


async def test_what_a_dead_process_held_open_is_dead_also_when_its_host_is_back(world: Net) -> None:
    old, (_, b) = world.network.at("b"), await world.pair()
    world.network.cut("b")
    world.network.restore("b")
    with pytest.raises(OSError, match="b was cut off"):
        await old.connect("a", PORT)
    with pytest.raises(trio.BrokenResourceError):
        await b.send_all(b"x")
    with pytest.raises(ConnectionRefusedError):
        await world.pair()
    dead = world.listening
    await world.listen()  # on the port of the dead host
    dead.cancel()  # it ends late
    await trio.sleep(SOON)
    await world.pair()


async def test_a_close_that_was_held_is_a_break_when_its_host_dies(world: Net) -> None:
    a, b = await world.pair()
    world.network.block("b", "a")
    await b.aclose()
    world.network.cut("b")
    world.network.unblock("b", "a")
    with pytest.raises(trio.BrokenResourceError):
        await a.receive_some()


async def test_a_host_that_is_cut_while_it_connects_gets_no_stream(world: Net) -> None:
    async def cut(after: float) -> None:
        await trio.sleep(after)
        world.network.cut("a")

    for after, accepted in ((0.0005, 0), (0.0015, 1)):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cut, after)
            with pytest.raises(OSError, match="a was cut off"):
                await world.pair()
        assert len(world.accepted) == accepted
        world.network.restore("a")
    with pytest.raises(trio.BrokenResourceError):
        await world.accepted[0].receive_some()


@pytest.mark.parametrize("victim", ["a", "b"])
async def test_a_connect_to_or_from_a_host_that_is_cut_meanwhile_fails(world: Net, victim: str) -> None:
    world.network.block("a", "b")

    async def expect_failure() -> None:
        with pytest.raises(OSError, match=r"nobody listens|cut off|reset"):
            await world.pair()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(expect_failure)
        await trio.sleep(1)
        world.network.cut(victim)
        world.network.unblock("a", "b")
    assert world.accepted == []


# Processes that are paused.


async def test_a_frozen_host_receives_nothing_and_sends_nothing_until_it_is_thawed(world: Net) -> None:
    a, b = await world.pair()
    await a.send_all(b"arrives while frozen")
    await b.send_all(b"left before")
    world.network.freeze("b")
    await b.send_all(b"held")
    assert await a.receive_some() == b"left before"
    assert await hangs(a.receive_some)
    assert await hangs(b.receive_some)
    assert await hangs(world.pair)
    start = now()
    world.network.thaw("b")
    assert await received(b, 1) == [(start, b"arrives while frozen")]
    assert await received(a, 1) == [(round(start + 0.001, 6), b"held")]


async def test_a_frozen_host_does_not_even_get_the_rest_of_a_chunk(world: Net) -> None:
    a, b = await world.pair()
    await a.send_all(b"abc")
    assert await b.receive_some(1) == b"a"
    world.network.freeze("b")
    assert await hangs(b.receive_some)
    world.network.thaw("b")
    assert await b.receive_some() == b"bc"


async def test_what_a_frozen_host_sends_on_a_broken_connection_is_lost(world: Net) -> None:
    a, b = await world.pair()
    world.network.freeze("b")
    world.network.break_connections("a", "b")
    await b.send_all(b"x")  # it cannot know of the fault
    world.network.thaw("b")
    await trio.sleep(1)
    with pytest.raises(trio.BrokenResourceError):
        await a.receive_some()


async def test_a_frozen_host_that_waits_is_woken_by_the_thaw(world: Net) -> None:
    a, b = await world.pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(b.receive_some)
        await a.send_all(b"x")
        await trio.sleep(SOON)
        world.network.freeze("b")
        await trio.sleep(10)
        assert world.deliveries == []
        world.network.thaw("b")
    assert world.deliveries[0][0] == pytest.approx(10.002)


async def test_a_frozen_host_sees_no_end_or_break_before_it_is_thawed(world: Net) -> None:
    (a1, b1), (_, b2) = await world.pair(), await world.pair()
    world.network.freeze("b")
    await a1.aclose()
    world.network.cut("a")
    await trio.sleep(1)
    for stream in (b1, b2):
        await stream.send_all(b"x")
        assert await hangs(stream.receive_some)
    world.network.thaw("b")
    assert await b1.receive_some() == b""
    with pytest.raises(trio.BrokenResourceError):
        await b2.receive_some()


async def test_a_frozen_host_that_is_cut_is_dead_to_its_peers(world: Net) -> None:
    a, b = await world.pair()
    world.network.freeze("b")
    await b.send_all(b"held")
    world.network.cut("b")
    with pytest.raises(trio.BrokenResourceError):
        await a.receive_some()
    world.network.freeze("b")
    world.network.restore("b")
    with pytest.raises(ConnectionRefusedError):
        await world.pair()


async def test_a_block_outlasts_a_pause_and_a_pause_outlasts_a_block(world: Net) -> None:
    a, b = await world.pair()
    world.network.block("b", "a")
    world.network.freeze("b")
    await b.send_all(b"x")
    world.network.thaw("b")
    assert await hangs(a.receive_some)
    world.network.freeze("b")
    world.network.unblock("b", "a")
    assert await hangs(a.receive_some)
    world.network.thaw("b")
    assert await a.receive_some() == b"x"
