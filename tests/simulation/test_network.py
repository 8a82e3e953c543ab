"""The network of simulations: deliveries and their times."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing

from simulator.network.network import Link, SimulatedNetwork
from simulator.network.pipe import MAX_CHUNKS
from simulator.scheduling import run
from tests.simulation.networks import DELIVERIES, PORT, SOON, Net, hangs, now, received
from transport.messages import ProduceRequest, ProduceResponse
from transport.wire import Connection, ConnectionBroken, open_connection, serve

# Deliveries and their times.


async def test_a_connect_takes_a_round_trip_and_a_chunk_takes_one_way(world: Net) -> None:
    world.network.set_link("a", "b", Link(latency=2.0))
    world.network.set_link("b", "a", Link(latency=3.0))
    a, b = await world.pair()
    assert now() == 5
    await a.send_all(b"request")
    assert await received(b, 1) == [(7, b"request")]
    await b.send_all(b"answer")
    assert await received(a, 1) == [(10, b"answer")]
    assert world.deliveries == [(7, "a", "b", 1, b"request"), (10, "b", "a", 1, b"answer")]


async def test_the_default_link_holds_wherever_none_is_set_also_for_what_is_open(world: Net) -> None:
    world.network.set_link("b", "a", Link(latency=0.0))
    world.network.default_link = Link(latency=4.0)
    a, b = await world.pair()
    assert now() == 4
    world.network.default_link = Link(latency=1.0)
    await a.send_all(b"x")
    assert await received(b, 1) == [(5, b"x")]
    await b.send_all(b"y")
    assert await received(a, 1) == [(5, b"y")]


async def test_chunks_keep_their_order_whatever_the_jitter_and_however_the_link_changes(world: Net) -> None:
    a, b = await world.pair()
    world.network.set_link("a", "b", Link(latency=1.0, jitter=5.0))
    sent = [bytes([n]) for n in range(100)]
    for chunk in sent[:-1]:
        await a.send_all(chunk)
    world.network.set_link("a", "b", Link(latency=0.0))
    await a.send_all(sent[-1])
    taken = await received(b, 100)
    assert [chunk for _, chunk in taken] == sent
    assert len({time for time, _ in taken}) > 1


async def test_connections_share_the_bandwidth_of_their_link(world: Net) -> None:
    (a1, b1), (a2, b2) = await world.pair(), await world.pair()
    start = now()
    world.network.set_link("a", "b", Link(latency=1.0, bytes_per_second=10.0))
    await a1.send_all(b"x" * 20)
    await a2.send_all(b"y" * 30)
    await a1.send_all(b"z")
    assert [time - start for time, _ in await received(b1, 2)] == pytest.approx([3.0, 6.1])
    assert [chunk for _, chunk in await received(b2, 1)] == [b"y" * 30]
    assert world.deliveries[2][0] - start == pytest.approx(6.1)  # it was due at 6, and is taken when b reads
    await b1.send_all(b"the other way is as fast as ever")
    assert (await received(a1, 1))[0][0] - start == pytest.approx(6.101)


async def test_what_is_sent_on_a_link_that_is_fast_again_does_not_queue_behind_what_it_was_slow_with(
    world: Net,
) -> None:
    (a1, b1), (a2, b2) = await world.pair(), await world.pair()
    start = now()
    world.network.default_link = Link(latency=0.001, bytes_per_second=1000.0)
    world.network.set_link("a", "b", Link(latency=1.0, bytes_per_second=1.0))
    await a1.send_all(b"x" * 100)
    world.network.mend()
    await a2.send_all(b"y")
    assert [time - start for time, _ in await received(b2, 1)] == pytest.approx([0.002])
    assert [time - start for time, _ in await received(b1, 1)] == pytest.approx([101.0])


async def test_no_chunk_is_no_bytes(world: Net) -> None:
    a, b = await world.pair()
    await a.send_all(b"")
    await a.send_all(b"x")
    assert await b.receive_some() == b"x"


async def test_a_chunk_may_be_taken_in_parts_and_is_observed_once(world: Net) -> None:
    a, b = await world.pair()
    for chunk in (b"abcdefg", b"h"):
        await a.send_all(chunk)
    assert [await b.receive_some(3) for _ in range(4)] == [b"abc", b"def", b"g", b"h"]
    assert [entry[-1] for entry in world.deliveries] == [b"abcdefg", b"h"]


async def test_what_is_sent_is_what_it_was_when_it_was_sent(world: Net) -> None:
    a, b = await world.pair()
    data = bytearray(b"first")
    await a.send_all(data)
    data[:] = b"later"
    await a.send_all(memoryview(b"whole")[1:])
    assert [await b.receive_some(), await b.receive_some()] == [b"first", b"hole"]


async def test_a_sender_waits_while_too_much_is_under_way(world: Net) -> None:
    a, b = await world.pair()
    for _ in range(MAX_CHUNKS):
        await a.send_all(b"x")
    assert await hangs(partial(a.send_all, b"lost"))
    assert await hangs(a.wait_send_all_might_not_block)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(a.send_all, b"last")
        await trio.sleep(SOON)
        await b.receive_some()
    assert [chunk for _, chunk in await received(b, MAX_CHUNKS)] == [b"x"] * (MAX_CHUNKS - 1) + [b"last"]


async def test_a_receiver_that_is_cancelled_at_any_moment_loses_nothing(world: Net) -> None:
    a, b = await world.pair()
    world.network.set_link("a", "b", Link(latency=1.0))
    taken = []
    for n in range(60):
        if n % 3 == 0:
            await a.send_all(bytes([n]))
        with trio.move_on_after(0.5 * (n % 4)):  # before it is due, when it is due, and after
            taken.append(await b.receive_some())
    while len(taken) < 20:
        taken.append(await b.receive_some())
    assert taken == [bytes([n]) for n in range(0, 60, 3)]


async def test_a_sender_that_is_cancelled_has_sent_nothing(world: Net) -> None:
    a, b = await world.pair()
    with trio.CancelScope() as scope:
        scope.cancel()
        await a.send_all(b"x")
    assert await hangs(b.receive_some)


# Ends.


async def test_a_closed_end_is_read_behind_what_was_sent(world: Net) -> None:
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


async def test_closing_wakes_those_who_wait_at_the_same_end(world: Net) -> None:
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


async def test_a_sender_that_waits_for_room_is_let_go_when_the_peer_closes(world: Net) -> None:
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


async def test_what_is_sent_to_a_closed_peer_needs_no_room(world: Net) -> None:
    a, b = await world.pair()
    world.network.block("b", "a")
    await b.aclose()
    for _ in range(2 * MAX_CHUNKS):
        await a.send_all(b"x")


async def test_the_network_forgets_closed_streams(world: Net) -> None:
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


async def test_one_task_at_a_time_may_send_and_one_receive(world: Net) -> None:
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


async def test_a_receiver_that_asks_for_no_bytes_is_mistaken(world: Net) -> None:
    a, _ = await world.pair()
    with pytest.raises(ValueError, match="max_bytes"):
        await a.receive_some(0)


# Connecting and listening.


async def test_connecting_to_nobody_is_refused_after_a_round_trip(world: Net) -> None:
    for host, port in (("b", 4711), ("c", PORT)):
        start = now()
        with pytest.raises(ConnectionRefusedError, match=f"nobody listens at {host}:{port}"):
            await world.network.at("a").connect(host, port)
        assert now() - start == pytest.approx(0.002)


async def test_a_listener_that_ends_leaves_nothing_behind(world: Net) -> None:
    a, _ = await world.pair()
    world.listening.cancel()
    assert await a.receive_some() == b""  # its handler was cancelled
    with pytest.raises(ConnectionRefusedError):
        await world.pair()
    await world.listen()
    await world.pair()


async def test_a_caller_that_gives_up_connecting_leaves_a_closed_stream(world: Net) -> None:
    with trio.move_on_after(0.0015):  # the server has accepted, and the answer is in transit
        await world.pair()
    assert await world.accepted[-1].receive_some() == b""


@pytest.mark.parametrize(("source", "destination"), [("a", "b"), ("b", "a")])
async def test_connecting_hangs_while_either_direction_is_blocked(world: Net, source: str, destination: str) -> None:
    world.network.block(source, destination)
    assert await hangs(world.pair)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.pair)
        await trio.sleep(1)
        world.network.unblock(source, destination)
    await world.pair()


async def test_a_connect_under_way_breaks_too(world: Net) -> None:
    async def break_it(after: float) -> None:
        await trio.sleep(after)
        assert world.network.break_connections("a", "b") == 1

    for after in (0.0005, 0.0015):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(break_it, after)
            with pytest.raises(ConnectionResetError):
                await world.pair()


async def test_connecting_lets_others_run_even_where_it_takes_no_time(world: Net) -> None:
    world.network.default_link = Link(latency=0.0)
    with trio.testing.assert_checkpoints():
        await world.network.at("a").connect("b", PORT)


async def test_free_ports_are_dealt_in_order_and_not_again(world: Net, nursery: trio.Nursery) -> None:
    async def bound(port: int) -> int:
        async with trio.open_nursery() as serving:
            reported: int = await serving.start(world.network.at("c").serve, trio.aclose_forcefully, "c", port)
            serving.cancel_scope.cancel()
        return reported

    await nursery.start(world.network.at("c").serve, trio.aclose_forcefully, "c", 1025)
    assert [await bound(port) for port in (0, 0, 1024, 0)] == [1024, 1026, 1024, 1027]


async def test_an_address_in_use_or_of_another_host_is_an_os_error(world: Net) -> None:
    with pytest.raises(OSError, match="already in use"):
        await world.listen()
    with pytest.raises(OSError, match="cannot listen on b: this is a"):
        await world.network.at("a").serve(trio.aclose_forcefully, "b", 0)


async def test_a_host_can_talk_to_itself(world: Net) -> None:
    stream = await world.network.at("b").connect("b", PORT)
    await stream.send_all(b"ping")
    assert await world.accepted[-1].receive_some() == b"ping"
    await world.accepted[-1].send_all(b"pong")
    assert await stream.receive_some() == b"pong"


# The wire on it.


async def _produce(request: ProduceRequest) -> ProduceResponse:
    return ProduceResponse(len(request.values))


@asynccontextmanager
async def _connection(network: SimulatedNetwork) -> AsyncIterator[Connection]:
    """Serve at `b`, and yield a connection from `a`."""
    async with trio.open_nursery() as nursery:
        port = await nursery.start(serve, network.at("b"), {ProduceRequest: _produce}, "b", 0)
        async with open_connection(network.at("a"), "b", port, client_id="me") as connection:
            yield connection
        nursery.cancel_scope.cancel()


async def test_a_connection_breaks_with_its_server_and_another_one_is_made(world: Net) -> None:
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
    """Return the deliveries while three hosts query a fourth one, through a partition and a pause."""
    seen: DELIVERIES = []

    async def ask(network: SimulatedNetwork, port: int, host: str) -> None:
        async with open_connection(network.at(host), "b", port, client_id=host) as connection:
            for n in range(5):
                await connection.call(ProduceRequest(host, n, 1, 0, ()))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            network = Net(nursery, seed, seen).network
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
