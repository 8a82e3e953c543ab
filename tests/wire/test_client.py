"""The client's end, over streams in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from transport.errors import ApiError, ErrorCode
from transport.messages import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from transport.network import Network
from transport.wire import (
    CodecError,
    Connection,
    ConnectionBroken,
    Handlers,
    RequestTimedOut,
    UnsupportedApi,
    encode,
    frame,
    open_connection,
    serve_stream,
)
from transport.wire.envelope import RequestEnvelope, ResponseEnvelope
from transport.wire.frame_stream import FrameStream

NetworkTo = Callable[[trio.abc.Stream], Network]
PRODUCE, METADATA, VERSIONS = 0, 3, 18
METADATA_RESPONSE = MetadataResponse(None, 5, (), ())


def _produce(partition: int) -> ProduceRequest:
    return ProduceRequest("t", partition, -1, 0, ())


@asynccontextmanager
async def _connected_to(handlers: Handlers, network_to: NetworkTo) -> AsyncGenerator[Connection, None]:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_stream, theirs, handlers)
        async with open_connection(network_to(ours), "broker", 9092, client_id="me") as connection:
            yield connection


async def _take_request(frames: FrameStream) -> RequestEnvelope:
    payload = await frames.receive()
    assert payload is not None
    return RequestEnvelope.unpack(payload)


async def _offer(frames: FrameStream, *apis: ApiVersion) -> None:
    request = await _take_request(frames)
    assert (request.api_key, request.api_version, request.client_id) == (VERSIONS, 0, "me")
    response = ResponseEnvelope(request.correlation_id, 0, encode(ApiVersionsResponse(apis)))
    await frames.send(frame(response.pack()))


# --- connecting -------------------------------------------------------------------------------------------------


async def test_the_first_request_negotiates_versions_whatever_else_is_offered(network_to: NetworkTo) -> None:
    ours, theirs = memory_stream_pair()
    peer = FrameStream(theirs)
    seen = []

    async def answer() -> None:
        offered = ApiVersion(METADATA, 0, 7), ApiVersion(PRODUCE, 3, 9), ApiVersion(424242, 0, 1), ApiVersion(44, 0, 0)
        await _offer(peer, *offered)
        request = await _take_request(peer)
        seen.append((request.api_key, request.api_version))
        await peer.send(frame(ResponseEnvelope(request.correlation_id, 0, encode(METADATA_RESPONSE)).pack()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        async with open_connection(network_to(ours), "broker", 9092, client_id="me") as connection:
            assert await connection.call(MetadataRequest()) == METADATA_RESPONSE
            with pytest.raises(UnsupportedApi, match="broker:9092 does not offer Produce in versions 0 to 0"):
                await connection.call(_produce(1))
            with pytest.raises(UnsupportedApi, match="Fetch"):
                await connection.call(FetchRequest(-1, 0, ()))
            # A controller of an earlier release would make the changes that are only to be checked.
            with pytest.raises(UnsupportedApi, match="up to version 0, which cannot do this"):
                await connection.call(IncrementalAlterConfigsRequest((), validate_only=True))
    assert seen == [(METADATA, 5)]  # the highest that both speak


async def test_a_peer_that_does_not_negotiate_in_time_is_a_broken_connection(
    network_to: NetworkTo, autojump_clock: MockClock
) -> None:
    ours, theirs = memory_stream_pair()
    began = autojump_clock.current_time()
    with pytest.raises(ConnectionBroken, match=r"^cannot connect to broker:9092: no answer within 5 s$"):
        async with open_connection(network_to(ours), "broker", 9092, client_id="me", connect_timeout=5):
            pytest.fail("connected")
    assert autojump_clock.current_time() - began == pytest.approx(5)
    await theirs.receive_some()
    assert await theirs.receive_some() == b""  # closed


async def test_a_peer_that_refuses_to_negotiate_is_a_broken_connection(network_to: NetworkTo) -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(frame(ResponseEnvelope(0, ErrorCode.UNSUPPORTED_VERSION, encode("too old")).pack()))
    with pytest.raises(ConnectionBroken, match=r"cannot agree with broker:9092 on versions: .*too old"):
        async with open_connection(network_to(ours), "broker", 9092, client_id="me"):
            pytest.fail("connected")
    with pytest.raises(trio.ClosedResourceError):
        await ours.receive_some()


async def test_exceptions_of_the_body_pass_through_as_they_are(network_to: NetworkTo) -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_stream, theirs, {})
        with pytest.raises(ZeroDivisionError):  # a group would not match
            async with open_connection(network_to(ours), "broker", 9092, client_id="me"):
                raise ZeroDivisionError


async def test_the_end_of_the_body_closes_the_connection_and_keeps_its_exception_even_when_cancelled(
    network_to: NetworkTo,
) -> None:
    ours, theirs = memory_stream_pair()

    async def fail_when_cancelled() -> None:
        with trio.CancelScope() as scope:
            async with open_connection(network_to(ours), "broker", 9092, client_id="me"):
                scope.cancel()
                raise ZeroDivisionError

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_stream, theirs, {})
        with pytest.raises(ZeroDivisionError):
            await fail_when_cancelled()
    with pytest.raises(trio.ClosedResourceError):
        await ours.receive_some()


# --- answers ----------------------------------------------------------------------------------------------------


async def test_an_answered_error_is_raised_and_the_connection_goes_on(network_to: NetworkTo) -> None:
    async def metadata(request: MetadataRequest) -> MetadataResponse:
        if request.topics:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "ask broker 3")
        return METADATA_RESPONSE

    async with _connected_to({MetadataRequest: metadata}, network_to) as connection:
        with pytest.raises(ApiError, match=r"^NOT_CONTROLLER: ask broker 3$") as caught:
            await connection.call(MetadataRequest(("t",)))
        assert (caught.value.code, caught.value.message) == (ErrorCode.NOT_CONTROLLER, "ask broker 3")
        assert await connection.call(MetadataRequest()) == METADATA_RESPONSE


async def test_a_request_that_cannot_be_encoded_is_the_callers_fault_and_not_the_connections(
    network_to: NetworkTo,
) -> None:
    async def metadata(_: MetadataRequest) -> MetadataResponse:
        return METADATA_RESPONSE

    async with _connected_to({MetadataRequest: metadata}, network_to) as connection:
        with pytest.raises(CodecError):
            await connection.call(MetadataRequest(("\ud800",)))
        assert await connection.call(MetadataRequest()) == METADATA_RESPONSE


async def test_an_error_code_that_we_do_not_know_is_an_unknown_error(network_to: NetworkTo) -> None:
    del network_to
    ours, theirs = memory_stream_pair()
    connection = Connection(ours, peer="broker:9092", client_id="me")
    await theirs.send_all(frame(ResponseEnvelope(0, 4711, encode("new in version 9")).pack()))
    with pytest.raises(ApiError, match="UNKNOWN_SERVER_ERROR: new in version 9"):
        await connection.call(ApiVersionsRequest())


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(
            frame(ResponseEnvelope(1, 0, b"\x91\x90").pack()), "not the one under way", id="of another request"
        ),
        pytest.param(frame(ResponseEnvelope(0, 0, b"\x90").pack()), "broke: .*ApiVersionsResponse", id="no message"),
        pytest.param(frame(ResponseEnvelope(0, 42, b"\x90").pack()), "broke: str: Expected `str`", id="no sentence"),
        pytest.param(frame(b"\xc1"), "broke: not an envelope", id="no envelope"),
        pytest.param(b"HTTP/1.1 400 Bad Request", "broke: a frame of 1213486160 bytes", id="no frame"),
        pytest.param(b"\x00\x00\x01", "closed the connection", id="cut off"),
        pytest.param(b"", "closed the connection", id="none"),
    ],
)
async def test_an_answer_that_is_none_breaks_the_connection_for_good(answer: bytes, reason: str) -> None:
    ours, theirs = memory_stream_pair()
    connection = Connection(ours, peer="broker:9092", client_id="me")
    if answer:
        await theirs.send_all(answer)
    await theirs.send_eof()
    with pytest.raises(ConnectionBroken, match=f"broker:9092.* {reason}"):
        await connection.call(ApiVersionsRequest())
    with pytest.raises(ConnectionBroken, match="the connection to broker:9092 is closed"):
        await connection.call(ApiVersionsRequest())
    with pytest.raises(trio.ClosedResourceError):
        await ours.send_all(b"x")


# --- one request at a time --------------------------------------------------------------------------------------


async def test_callers_queue_up_and_one_request_is_under_way_at_a_time(autojump_clock: MockClock) -> None:  # noqa: ARG001
    ours, theirs = memory_stream_pair()
    connection = Connection(ours, peer="broker:9092", client_id="me")
    peer = FrameStream(theirs)
    answered = []

    async def call(number: int) -> None:
        await trio.sleep(number / 10)
        await connection.call(ApiVersionsRequest())
        answered.append(number)

    async with trio.open_nursery() as nursery:
        for number in (0, 1, 2):
            nursery.start_soon(call, number)
        for number in (0, 1, 2):
            request = await _take_request(peer)
            assert request.correlation_id == number
            with trio.move_on_after(1) as pause:
                await peer.receive()
            assert pause.cancelled_caught  # nothing more is sent before the answer
            await peer.send(frame(ResponseEnvelope(number, 0, encode(ApiVersionsResponse(()))).pack()))
    assert answered == [0, 1, 2]


async def test_a_call_that_times_out_closes_the_connection(autojump_clock: MockClock) -> None:  # noqa: ARG001
    ours, theirs = memory_stream_pair()
    connection = Connection(ours, peer="broker:9092", client_id="me")
    with pytest.raises(RequestTimedOut, match="broker:9092 did not answer ApiVersions within 3 s"):
        await connection.call(ApiVersionsRequest(), timeout=3)
    await _take_request(FrameStream(theirs))
    assert await theirs.receive_some() == b""
    with pytest.raises(ConnectionBroken):
        await connection.call(ApiVersionsRequest())


async def test_a_call_that_is_cancelled_closes_the_connection(autojump_clock: MockClock) -> None:  # noqa: ARG001
    ours, theirs = memory_stream_pair()
    connection = Connection(ours, peer="broker:9092", client_id="me")
    with trio.move_on_after(1) as scope:
        await connection.call(ApiVersionsRequest())
    assert scope.cancelled_caught
    await _take_request(FrameStream(theirs))
    assert await theirs.receive_some() == b""


@pytest.mark.usefixtures("autojump_clock")
async def test_a_call_that_times_out_before_its_turn_harms_nobody(network_to: NetworkTo) -> None:
    async def produce(request: ProduceRequest) -> ProduceResponse:
        await trio.sleep(10)
        return ProduceResponse(request.partition)

    async with _connected_to({ProduceRequest: produce}, network_to) as connection, trio.open_nursery() as nursery:

        async def first() -> None:
            assert await connection.call(_produce(1)) == ProduceResponse(1)

        nursery.start_soon(first)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(RequestTimedOut):
            await connection.call(_produce(2), timeout=1)
        assert await connection.call(_produce(3)) == ProduceResponse(3)


async def test_closing_ends_the_call_under_way() -> None:
    ours, _theirs = memory_stream_pair()
    connection = Connection(ours, peer="broker:9092", client_id="me")
    async with trio.open_nursery() as nursery:

        async def call() -> None:
            with pytest.raises(ConnectionBroken):
                await connection.call(ApiVersionsRequest())

        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        await connection.close()
