"""The wire over every network: real sockets on loopback, and the streams of a simulation."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from functools import partial

import pytest
import trio
from structlog.testing import capture_logs

from simulator.network.network import SimulatedNetwork
from transport.errors import ApiError, ErrorCode
from transport.messages import LeaderAndIsrRequest, MetadataRequest, MetadataResponse, ProduceRequest, ProduceResponse
from transport.network import Network, TcpNetwork
from transport.wire import ConnectionBroken, Handlers, decode, frame, open_connection, serve
from transport.wire.envelope import RequestEnvelope, ResponseEnvelope
from transport.wire.frame_stream import FrameStream

HOST = "127.0.0.1"


async def _produce(request: ProduceRequest) -> ProduceResponse:
    return ProduceResponse(sum(map(len, request.values)))


HANDLERS: Handlers = {ProduceRequest: _produce}


@pytest.fixture(params=["tcp", "simulated"])
async def network(request: pytest.FixtureRequest) -> Network:
    if request.param == "tcp":
        return TcpNetwork()
    return SimulatedNetwork(random.Random(0), lambda *_: None).at(HOST)


@pytest.fixture
async def port(network: Network, nursery: trio.Nursery) -> int:
    bound: int = await nursery.start(serve, network, HANDLERS, HOST, 0)
    return bound


async def _expect_service(network: Network, port: int) -> None:
    async with open_connection(network, HOST, port, client_id="me") as connection:
        assert await connection.call(ProduceRequest("t", 0, 1, 0, (b"abc",))) == ProduceResponse(3)


@pytest.mark.requirement("E2")
async def test_requests_of_any_size_are_answered_over_many_connections_at_once(network: Network, port: int) -> None:
    async def ask(size: int) -> None:
        async with open_connection(network, HOST, port, client_id="me") as connection:
            for _ in range(3):
                response = await connection.call(ProduceRequest("t", 0, 1, 0, (b"x" * size,)))
                assert response == ProduceResponse(size)

    async with trio.open_nursery() as nursery:
        for size in (0, 1, 70_000, 3_000_000):
            nursery.start_soon(ask, size)


async def test_an_unknown_api_gets_a_sentence_for_an_answer(network: Network, port: int) -> None:
    async with await network.connect(HOST, port) as stream:
        frames = FrameStream(stream)
        await frames.send(frame(RequestEnvelope(4711, 0, 1, "me", b"\x90").pack()))
        payload = await frames.receive()
    assert payload is not None
    response = ResponseEnvelope.unpack(payload)
    assert response.error == ErrorCode.UNSUPPORTED_VERSION
    assert decode(str, response.body) == "There is no api with key 4711 here."


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="garbage"),
        pytest.param((100 * 1024 * 1024 + 1).to_bytes(4, "big"), id="a frame over the limit"),
        pytest.param(frame(b"\x91" * 100_000), id="a deeply nested envelope"),
    ],
)
async def test_what_is_no_request_ends_that_connection_and_nothing_else(
    network: Network, port: int, data: bytes
) -> None:
    async with open_connection(network, HOST, port, client_id="me") as other:
        async with await network.connect(HOST, port) as stream:
            await stream.send_all(data)
            with suppress(trio.BrokenResourceError):  # if it was closed with bytes of ours unread
                assert await stream.receive_some() == b""
        assert await other.call(ProduceRequest("t", 0, 1, 0, ())) == ProduceResponse(0)
    await _expect_service(network, port)


async def test_a_deeply_nested_body_is_refused(network: Network, port: int) -> None:
    async with await network.connect(HOST, port) as stream:
        frames = FrameStream(stream)
        await frames.send(frame(RequestEnvelope(0, 0, 1, "me", b"\x91" * 100_000).pack()))
        payload = await frames.receive()
    assert payload is not None
    assert ResponseEnvelope.unpack(payload).error == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("data", [b"", b"\x00\x00", b"\x00\x00\x00\x10half of"])
async def test_a_connection_that_ends_within_a_frame_harms_nobody(network: Network, port: int, data: bytes) -> None:
    async with await network.connect(HOST, port) as stream:
        if data:
            await stream.send_all(data)
    await _expect_service(network, port)


async def test_nobody_listening_is_a_broken_connection_that_names_the_address(network: Network) -> None:
    with socket.socket() as unused:
        unused.bind((HOST, 0))  # bound, and so nobody else's, but not listening
        port = unused.getsockname()[1]
        with pytest.raises(ConnectionBroken, match=f"cannot connect to {HOST}:{port}: "):
            async with open_connection(network, HOST, port, client_id="me"):
                pytest.fail("connected")


async def test_an_address_in_use_is_an_os_error(network: Network, port: int) -> None:
    with pytest.raises(OSError, match="in use"):
        await serve(network, HANDLERS, HOST, port)


async def test_delivery_of_small_frames_is_not_delayed(nursery: trio.Nursery) -> None:
    port = await nursery.start(serve, TcpNetwork(), HANDLERS, HOST, 0)
    stream = await TcpNetwork().connect(HOST, port)
    assert isinstance(stream, trio.SocketStream)
    async with stream:
        assert stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_a_fault_of_a_connection_handler_is_logged_and_ends_that_connection_only(
    network: Network, nursery: trio.Nursery
) -> None:
    async def echo_once(stream: trio.abc.Stream) -> None:
        data = await stream.receive_some()
        if data == b"fail":
            raise ZeroDivisionError
        await stream.send_all(data)

    port = await nursery.start(network.serve, echo_once, HOST, 0)
    with capture_logs() as logs:
        for sent, received in ((b"fail", b""), (b"hello", b"hello")):
            async with await network.connect(HOST, port) as stream:
                await stream.send_all(sent)
                assert await stream.receive_some() == received
                assert await stream.receive_some() == b""  # the handler's end closes the stream
    assert [log["event"] for log in logs] == ["connection handler failed"]


async def test_connections_over_the_bound_are_closed_until_another_one_ends(nursery: trio.Nursery) -> None:
    network = TcpNetwork(max_connections=1)
    port = await nursery.start(partial(serve, network, HANDLERS, HOST, 0))
    async with open_connection(network, HOST, port, client_id="first"):
        with pytest.raises(ConnectionBroken), capture_logs() as logs:
            async with open_connection(network, HOST, port, client_id="second"):
                pytest.fail("connected")
        assert logs[0]["limit"] == 1
    await trio.testing.wait_all_tasks_blocked()
    await _expect_service(network, port)


async def test_an_api_error_crosses_the_wire(network: Network, nursery: trio.Nursery) -> None:
    async def refuse(_: MetadataRequest) -> MetadataResponse:
        raise ApiError(ErrorCode.NOT_CONTROLLER, "ask broker 3")

    port = await nursery.start(serve, network, {MetadataRequest: refuse}, HOST, 0)
    async with open_connection(network, HOST, port, client_id="me") as connection:
        with pytest.raises(ApiError, match="NOT_CONTROLLER: ask broker 3"):
            await connection.call(MetadataRequest())
        with pytest.raises(Exception, match="does not offer LeaderAndIsr"):
            await connection.call(LeaderAndIsrRequest(1, 1, 1, ()))
