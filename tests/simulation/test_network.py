"""The network of simulations: what it delivers when, and what each fault does to it."""

# ruff: noqa: ARG001  clock is for trio, which takes the one that a test asks for

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing
from attrs import define, field
from trio.abc import Clock
from trio.testing import MockClock

from controller.simulation.alarms import VirtualClock
from controller.simulation.network import Link, SimulatedNetwork
from controller.simulation.pipe import MAX_CHUNKS
from controller.simulation.scheduling import run
from transport.messages import ProduceRequest, ProduceResponse
from transport.wire import Connection, ConnectionBroken, open_connection, serve

PORT = 9092
SOON = 1e-9
"""On virtual time no such time passes before everything is blocked."""

DELIVERIES = list[tuple[float, str, str, int, bytes]]


def _now() -> float:
    """Return the time in seconds, without what passes while waiting for `SOON`."""
    return round(trio.current_time(), 6)


@define
class World:
    """Host `b` listens, and host `a` connects; `deliveries` is what the observer saw."""

    nursery: trio.Nursery
    seed: int = 0
    deliveries: DELIVERIES = field(factory=list)
    network: SimulatedNetwork = field(init=False)
    accepted: list[trio.abc.Stream] = field(factory=list)
    listening: trio.CancelScope = field(factory=trio.CancelScope)

    def __attrs_post_init__(self) -> None:
        self.network = SimulatedNetwork(random.Random(self.seed), self._observe)

    async def listen(self, host: str = "b") -> None:
        await self.nursery.start(self._serve, host)

    async def pair(self) -> tuple[trio.abc.Stream, trio.abc.Stream]:
        """Return a new connection's end at `a` and its end at `b`."""
        stream = await self.network.at("a").connect("b", PORT)
        await trio.sleep(SOON)  # until the handler runs
        return stream, self.accepted[-1]

    async def _serve(self, host: str, *, task_status: trio.TaskStatus[int]) -> None:
        with trio.CancelScope() as self.listening:
            await self.network.at(host).serve(self._keep, host, PORT, task_status=task_status)

    async def _keep(self, stream: trio.abc.Stream) -> None:
        self.accepted.append(stream)
        await trio.sleep_forever()

    def _observe(self, source: str, destination: str, connection_id: int, chunk: bytes) -> None:
        self.deliveries.append((_now(), source, destination, connection_id, chunk))


@pytest.fixture(params=["VirtualClock", "MockClock"])
def clock(request: pytest.FixtureRequest) -> Clock:
    """Give the clock of simulations, and the one of people's own tests."""
    return VirtualClock(lambda: False) if request.param == "VirtualClock" else MockClock(autojump_threshold=0)


@pytest.fixture
async def world(nursery: trio.Nursery) -> World:
    world = World(nursery)
    await world.listen()
    return world


async def _received(stream: trio.abc.Stream, chunks: int) -> list[tuple[float, bytes]]:
    """Receive so many chunks, each with the time at which it came."""
    received = []
    for _ in range(chunks):
        data = bytes(await stream.receive_some())
        received.append((_now(), data))
    return received


async def _expect_none(stream: trio.abc.Stream, seconds: float) -> None:
    assert await _hangs(stream.receive_some, seconds)


async def _hangs(what: Callable[[], Awaitable[object]], seconds: float = 1000.0) -> bool:
    with trio.move_on_after(seconds) as scope:
        await what()
    return scope.cancelled_caught


# What is delivered when.


async def test_a_connect_takes_a_round_trip_and_a_chunk_takes_one_way(world: World, clock: Clock) -> None:
    world.network.set_link("a", "b", Link(latency=2.0))
    world.network.set_link("b", "a", Link(latency=3.0))
    a, b = await world.pair()
    assert _now() == 5
    await a.send_all(b"request")
    assert await _received(b, 1) == [(7, b"request")]
    await b.send_all(b"answer")
    assert await _received(a, 1) == [(10, b"answer")]
    assert world.deliveries == [(7, "a", "b", 1, b"request"), (10, "b", "a", 1, b"answer")]


async def test_the_default_link_holds_wherever_none_is_set_also_for_what_is_open(world: World, clock: Clock) -> None:
    world.network.set_link("b", "a", Link(latency=0.0))
    world.network.default_link = Link(latency=4.0)
    a, b = await world.pair()
    assert _now() == 4
    world.network.default_link = Link(latency=1.0)
    await a.send_all(b"x")
    assert await _received(b, 1) == [(5, b"x")]
    await b.send_all(b"y")
    assert await _received(a, 1) == [(5, b"y")]


async def test_chunks_keep_their_order_whatever_the_jitter_and_however_the_link_changes(
    world: World, clock: Clock
) -> None:
    a, b = await world.pair()
    world.network.set_link("a", "b", Link(latency=1.0, jitter=5.0))
    sent = [bytes([n]) for n in range(100)]
    for chunk in sent[:-1]:
        await a.send_all(chunk)
    world.network.set_link("a", "b", Link(latency=0.0))
    await a.send_all(sent[-1])
    received = await _received(b, 100)
    assert [chunk for _, chunk in received] == sent
    assert len({time for time, _ in received}) > 1


async def test_connections_share_the_bandwidth_of_their_link(world: World, clock: Clock) -> None:
    (a1, b1), (a2, b2) = await world.pair(), await world.pair()
    start = _now()
    world.network.set_link("a", "b", Link(latency=1.0, bytes_per_second=10.0))
    await a1.send_all(b"x" * 20)
    await a2.send_all(b"y" * 30)
    await a1.send_all(b"z")
    assert [time - start for time, _ in await _received(b1, 2)] == pytest.approx([3.0, 6.1])
    assert [chunk for _, chunk in await _received(b2, 1)] == [b"y" * 30]
    assert world.deliveries[2][0] - start == pytest.approx(6.1)  # it was due at 6, and is taken when b reads
    await b1.send_all(b"the other way is as fast as ever")
    assert (await _received(a1, 1))[0][0] - start == pytest.approx(6.101)


async def test_no_chunk_is_no_bytes(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    await a.send_all(b"")
    await a.send_all(b"x")
    assert await b.receive_some() == b"x"


async def test_a_chunk_may_be_taken_in_parts_and_is_observed_once(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    for chunk in (b"abcdefg", b"h"):
        await a.send_all(chunk)
    assert [await b.receive_some(3) for _ in range(4)] == [b"abc", b"def", b"g", b"h"]
    assert [entry[-1] for entry in world.deliveries] == [b"abcdefg", b"h"]


async def test_what_is_sent_is_what_it_was_when_it_was_sent(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    data = bytearray(b"first")
    await a.send_all(data)
    data[:] = b"later"
    await a.send_all(memoryview(b"whole")[1:])
    assert [await b.receive_some(), await b.receive_some()] == [b"first", b"hole"]


async def test_a_sender_waits_while_too_much_is_under_way(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    for _ in range(MAX_CHUNKS):
        await a.send_all(b"x")
    assert await _hangs(partial(a.send_all, b"lost"))
    assert await _hangs(a.wait_send_all_might_not_block)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a.send_all, b"last")
        await trio.sleep(SOON)
        await b.receive_some()
    assert [chunk for _, chunk in await _received(b, MAX_CHUNKS)] == [b"x"] * (MAX_CHUNKS - 1) + [b"last"]


async def test_a_receiver_that_is_cancelled_at_any_moment_loses_nothing(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    world.network.set_link("a", "b", Link(latency=1.0))
    received = []
    for n in range(60):
        if n % 3 == 0:
            await a.send_all(bytes([n]))
        with trio.move_on_after(0.5 * (n % 4)):  # before it is due, as it is due, and after
            received.append(await b.receive_some())
    while len(received) < 20:
        received.append(await b.receive_some())
    assert received == [bytes([n]) for n in range(0, 60, 3)]


async def test_a_sender_that_is_cancelled_has_sent_nothing(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    with trio.CancelScope() as scope:
        scope.cancel()
        await a.send_all(b"x")
    assert await _hangs(b.receive_some)


# Ends.


async def test_a_closed_end_is_read_behind_what_was_sent(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    await a.send_all(b"bye")
    await a.aclose()
    await a.aclose()
    await b.send_all(b"nobody reads this")
    assert [await b.receive_some() for _ in range(3)] == [b"bye", b"", b""]
    with pytest.raises(trio.BrokenResourceError):
        await b.send_all(b"x")
    for use in (a.receive_some, partial(a.send_all, b"x"), partial(a.send_all, b""), a.wait_send_all_might_not_block):
        with pytest.raises(trio.ClosedResourceError):
            await use()


async def test_closing_wakes_those_who_wait_at_the_same_end(world: World, clock: Clock) -> None:
    a, _ = await world.pair()
    for _ in range(MAX_CHUNKS):
        await a.send_all(b"x")

    async def expect_closed(use: Callable[[], Awaitable[object]]) -> None:
        with pytest.raises(trio.ClosedResourceError):
            await use()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(expect_closed, a.receive_some)
        nursery.start_soon(expect_closed, partial(a.send_all, b"y"))
        await trio.sleep(SOON)
        nursery.start_soon(a.aclose)
        nursery.start_soon(a.aclose)


async def test_a_sender_that_waits_for_room_is_let_go_when_the_peer_closes(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    for _ in range(MAX_CHUNKS):
        await a.send_all(b"x")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a.send_all, b"y")
        await trio.sleep(SOON)
        await b.aclose()
    assert await a.receive_some() == b""
    with pytest.raises(trio.BrokenResourceError):
        await a.send_all(b"z")


async def test_what_is_sent_to_a_closed_peer_needs_no_room(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    world.network.block("b", "a")
    await b.aclose()
    for _ in range(2 * MAX_CHUNKS):
        await a.send_all(b"x")


async def test_the_network_forgets_closed_streams(world: World, clock: Clock) -> None:
    streams = [weakref.ref(stream) for stream in await world.pair()]
    world.listening.cancel()  # and with it b's handler
    stream = streams[0]()
    assert stream is not None
    await stream.aclose()
    del stream
    world.accepted.clear()
    await trio.sleep(1)
    gc.collect()
    assert [stream() for stream in streams] == [None, None]


async def test_one_task_at_a_time_may_send_and_one_receive(world: World, clock: Clock) -> None:
    a, _ = await world.pair()
    for _ in range(MAX_CHUNKS):
        await a.send_all(b"x")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a.receive_some)
        nursery.start_soon(a.send_all, b"y")
        await trio.sleep(SOON)
        for use in (a.receive_some, partial(a.send_all, b"z"), a.wait_send_all_might_not_block):
            with pytest.raises(trio.BusyResourceError):
                await use()
        nursery.cancel_scope.cancel()


async def test_a_receiver_that_asks_for_no_bytes_is_mistaken(world: World, clock: Clock) -> None:
    a, _ = await world.pair()
    with pytest.raises(ValueError, match="max_bytes"):
        await a.receive_some(0)


# Connecting and listening.


async def test_connecting_to_nobody_is_refused_after_a_round_trip(world: World, clock: Clock) -> None:
    for host, port in (("b", 4711), ("c", PORT)):
        start = _now()
        with pytest.raises(ConnectionRefusedError, match=f"nobody listens at {host}:{port}"):
            await world.network.at("a").connect(host, port)
        assert _now() - start == pytest.approx(0.002)


async def test_a_listener_that_ends_leaves_nothing_behind(world: World, clock: Clock) -> None:
    a, _ = await world.pair()
    world.listening.cancel()
    assert await a.receive_some() == b""  # its handler was cancelled
    with pytest.raises(ConnectionRefusedError):
        await world.pair()
    await world.listen()
    await world.pair()


async def test_a_caller_that_gives_up_connecting_leaves_a_closed_stream(world: World, clock: Clock) -> None:
    with trio.move_on_after(0.0015):  # the server has accepted, and the answer is under way
        await world.pair()
    assert await world.accepted[-1].receive_some() == b""


async def test_connecting_lets_others_run_even_where_it_takes_no_time(world: World, clock: Clock) -> None:
    world.network.default_link = Link(latency=0.0)
    with trio.testing.assert_checkpoints():
        await world.network.at("a").connect("b", PORT)


async def test_free_ports_are_dealt_in_order_and_not_again(world: World, clock: Clock, nursery: trio.Nursery) -> None:
    async def bound(port: int) -> int:
        async with trio.open_nursery() as serving:
            reported: int = await serving.start(world.network.at("c").serve, trio.aclose_forcefully, "c", port)
            serving.cancel_scope.cancel()
        return reported

    await nursery.start(world.network.at("c").serve, trio.aclose_forcefully, "c", 1025)
    assert [await bound(port) for port in (0, 0, 1024, 0)] == [1024, 1026, 1024, 1027]


async def test_an_address_in_use_or_of_another_host_is_an_os_error(world: World, clock: Clock) -> None:
    with pytest.raises(OSError, match="already in use"):
        await world.listen()
    with pytest.raises(OSError, match="cannot listen on b: this is a"):
        await world.network.at("a").serve(trio.aclose_forcefully, "b", 0)


async def test_a_host_can_talk_to_itself(world: World, clock: Clock) -> None:
    stream = await world.network.at("b").connect("b", PORT)
    await stream.send_all(b"ping")
    assert await world.accepted[-1].receive_some() == b"ping"
    await world.accepted[-1].send_all(b"pong")
    assert await stream.receive_some() == b"pong"


# Partitions.


async def test_a_block_holds_one_direction_and_delivers_in_order_when_it_ends(world: World, clock: Clock) -> None:
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
    assert await _hangs(b.receive_some)
    start = _now()
    world.network.unblock("a", "b")
    assert await _received(b, 2) == [(start + 1, b"2"), (start + 1, b"3")]


async def test_a_receiver_that_waits_is_held_by_a_block_and_woken_after_it(world: World, clock: Clock) -> None:
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


@pytest.mark.parametrize(("source", "destination"), [("a", "b"), ("b", "a")])
async def test_connecting_hangs_while_either_direction_is_blocked(
    world: World, clock: Clock, source: str, destination: str
) -> None:
    world.network.block(source, destination)
    assert await _hangs(world.pair)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.pair)
        await trio.sleep(1)
        world.network.unblock(source, destination)
    await world.pair()


async def test_what_a_blocked_sender_sends_is_bounded(world: World, clock: Clock) -> None:
    a, _ = await world.pair()
    world.network.block("a", "b")
    for _ in range(MAX_CHUNKS):
        await a.send_all(b"x")
    assert await _hangs(partial(a.send_all, b"x"))


async def test_nothing_under_way_passes_a_block_however_fast_its_link(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    for chunk, latency in ((b"slow", 5.0), (b"slow too", 6.0), (b"fast", 1.0)):
        world.network.set_link("a", "b", Link(latency=latency))
        await a.send_all(chunk)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_expect_none, b, 10.0)
        await trio.sleep(2)
        world.network.block("a", "b")
    start = _now()
    world.network.unblock("a", "b")
    assert await _received(b, 3) == [(start + 1, b"slow"), (start + 1, b"slow too"), (start + 1, b"fast")]


async def test_what_leaves_behind_a_block_may_arrive_before_it_was_due_at_first(world: World, clock: Clock) -> None:
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


async def test_an_end_under_way_is_held_too_and_one_that_has_arrived_stays(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    await a.aclose()
    world.network.block("a", "b")
    assert await _hangs(b.receive_some)
    world.network.unblock("a", "b")
    await trio.sleep(1)
    start = _now()
    world.network.unblock("a", "b")
    assert await b.receive_some() == b""
    assert _now() == start


async def test_a_close_behind_a_block_is_seen_when_it_ends(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    world.network.block("a", "b")
    await a.send_all(b"bye")
    await a.aclose()
    assert await _hangs(b.receive_some)
    await b.send_all(b"x")
    world.network.unblock("a", "b")
    assert [await b.receive_some(), await b.receive_some()] == [b"bye", b""]


# Broken connections.


async def test_broken_connections_lose_what_was_under_way_at_both_ends(world: World, clock: Clock) -> None:
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


async def test_a_break_is_seen_by_those_who_wait_even_where_blocked(world: World, clock: Clock) -> None:
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


async def test_a_connect_under_way_breaks_too(world: World, clock: Clock) -> None:
    async def break_it(after: float) -> None:
        await trio.sleep(after)
        assert world.network.break_connections("a", "b") == 1

    for after in (0.0005, 0.0015):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(break_it, after)
            with pytest.raises(ConnectionResetError):
                await world.pair()


# Processes that die.


async def test_nothing_leaves_a_host_that_was_cut_and_its_peers_see_the_break(world: World, clock: Clock) -> None:
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


async def test_those_who_wait_at_a_host_see_at_once_that_it_was_cut(world: World, clock: Clock) -> None:
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
        start = _now()
        world.network.cut("b")
        world.network.cut("b")
    assert _now() == start
    assert [chunk for _, chunk in await _received(a, MAX_CHUNKS)] == [b"x"] * MAX_CHUNKS
    await expect_break(a.receive_some)


async def test_a_peer_behind_a_block_sees_the_break_when_it_ends_and_nothing_that_was_held(
    world: World, clock: Clock
) -> None:
    a, b = await world.pair()
    world.network.block("b", "a")
    await b.send_all(b"held")
    world.network.cut("b")
    assert await _hangs(a.receive_some)
    await a.send_all(b"to nobody")
    world.network.restore("b")
    world.network.unblock("b", "a")
    with pytest.raises(trio.BrokenResourceError):
        await a.receive_some()


async def test_what_a_dead_process_held_open_is_dead_also_when_its_host_is_back(world: World, clock: Clock) -> None:
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
    await world.listen()  # on the port that the dead one had
    dead.cancel()  # it ends late
    await trio.sleep(SOON)
    await world.pair()


async def test_a_close_that_was_held_is_a_break_when_its_host_dies(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    world.network.block("b", "a")
    await b.aclose()
    world.network.cut("b")
    world.network.unblock("b", "a")
    with pytest.raises(trio.BrokenResourceError):
        await a.receive_some()


async def test_a_host_that_is_cut_while_it_connects_gets_no_stream(world: World, clock: Clock) -> None:
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
async def test_a_connect_to_or_from_a_host_that_is_cut_meanwhile_fails(world: World, clock: Clock, victim: str) -> None:
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


async def test_a_frozen_host_receives_nothing_and_sends_nothing_until_it_is_thawed(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    await a.send_all(b"arrives while frozen")
    await b.send_all(b"left before")
    world.network.freeze("b")
    await b.send_all(b"held")
    assert await a.receive_some() == b"left before"
    assert await _hangs(a.receive_some)
    assert await _hangs(b.receive_some)
    assert await _hangs(world.pair)
    start = _now()
    world.network.thaw("b")
    assert await _received(b, 1) == [(start, b"arrives while frozen")]
    assert await _received(a, 1) == [(round(start + 0.001, 6), b"held")]


async def test_a_frozen_host_does_not_even_get_the_rest_of_a_chunk(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    await a.send_all(b"abc")
    assert await b.receive_some(1) == b"a"
    world.network.freeze("b")
    assert await _hangs(b.receive_some)
    world.network.thaw("b")
    assert await b.receive_some() == b"bc"


async def test_what_a_frozen_host_sends_on_a_broken_connection_is_lost(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    world.network.freeze("b")
    world.network.break_connections("a", "b")
    await b.send_all(b"x")  # it cannot know
    world.network.thaw("b")
    await trio.sleep(1)
    with pytest.raises(trio.BrokenResourceError):
        await a.receive_some()


async def test_a_frozen_host_that_waits_is_woken_by_the_thaw(world: World, clock: Clock) -> None:
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


async def test_a_frozen_host_sees_no_end_or_break_before_it_is_thawed(world: World, clock: Clock) -> None:
    (a1, b1), (_, b2) = await world.pair(), await world.pair()
    world.network.freeze("b")
    await a1.aclose()
    world.network.cut("a")
    await trio.sleep(1)
    for stream in (b1, b2):
        await stream.send_all(b"x")
        assert await _hangs(stream.receive_some)
    world.network.thaw("b")
    assert await b1.receive_some() == b""
    with pytest.raises(trio.BrokenResourceError):
        await b2.receive_some()


async def test_a_frozen_host_that_is_cut_is_dead_to_its_peers(world: World, clock: Clock) -> None:
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


async def test_a_block_outlasts_a_pause_and_a_pause_outlasts_a_block(world: World, clock: Clock) -> None:
    a, b = await world.pair()
    world.network.block("b", "a")
    world.network.freeze("b")
    await b.send_all(b"x")
    world.network.thaw("b")
    assert await _hangs(a.receive_some)
    world.network.freeze("b")
    world.network.unblock("b", "a")
    assert await _hangs(a.receive_some)
    world.network.thaw("b")
    assert await a.receive_some() == b"x"


# The wire on it.


async def _produce(request: ProduceRequest) -> ProduceResponse:
    return ProduceResponse(len(request.values))


@asynccontextmanager
async def _connection(network: SimulatedNetwork) -> AsyncIterator[Connection]:
    """Serve at `b`, and give a connection from `a`."""
    async with trio.open_nursery() as nursery:
        port = await nursery.start(serve, network.at("b"), {ProduceRequest: _produce}, "b", 0)
        async with open_connection(network.at("a"), "b", port, client_id="me") as connection:
            yield connection
        nursery.cancel_scope.cancel()


async def test_a_connection_breaks_with_its_server_and_another_one_is_made(world: World, clock: Clock) -> None:
    async with _connection(world.network) as connection:
        assert await connection.call(ProduceRequest("t", 0, 1, 0, (b"x",))) == ProduceResponse(1)
        world.network.cut("b")
        with pytest.raises(ConnectionBroken):
            await connection.call(ProduceRequest("t", 0, 1, 0, (b"x",)))
    world.network.restore("b")
    async with _connection(world.network) as connection:
        assert await connection.call(ProduceRequest("t", 0, 1, 0, (b"x", b"y"))) == ProduceResponse(2)


# Replay.


def _deliveries(seed: int) -> DELIVERIES:
    """Return what is delivered while three hosts ask a fourth one, through a partition and a pause."""
    seen: DELIVERIES = []

    async def ask(network: SimulatedNetwork, port: int, host: str) -> None:
        async with open_connection(network.at(host), "b", port, client_id=host) as connection:
            for n in range(5):
                await connection.call(ProduceRequest(host, n, 1, 0, ()))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            network = World(nursery, seed, seen).network
            network.default_link = Link(latency=0.01, jitter=0.005)
            port = await nursery.start(serve, network.at("b"), {ProduceRequest: _produce}, "b", 0)
            async with trio.open_nursery() as asking:
                for host in ("a", "c", "d"):
                    asking.start_soon(ask, network, port, host)
                await trio.sleep(0.1)
                network.block("b", "c")
                network.freeze("d")
                await trio.sleep(0.1)
                network.unblock("b", "c")
                network.thaw("d")
            nursery.cancel_scope.cancel()

    run(main, seed=seed)
    return seen


def test_the_same_seed_gives_the_same_deliveries_and_another_one_gives_others() -> None:
    first = _deliveries(1)
    assert len(first) == 3 * 2 * 6
    assert first == _deliveries(1) != _deliveries(2)
