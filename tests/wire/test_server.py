"""The server's end, over streams in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgpack
import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock, memory_stream_pair

from transport.errors import ApiError, ErrorCode
from transport.messages import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BrokerEndpoint,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
    StopReplicaRequest,
)
from transport.wire import Handlers, decode, encode, frame, serve_stream
from transport.wire.envelope import RequestEnvelope, ResponseEnvelope
from transport.wire.frame_stream import FrameStream

PRODUCE, FETCH, METADATA, STOP_REPLICA, VERSIONS, CREATE_TOPICS = 0, 1, 3, 5, 18, 19
LIMIT = 1000


async def _produce(request: ProduceRequest) -> ProduceResponse:
    await trio.sleep(request.timeout_ms)
    return ProduceResponse(request.partition)


async def _fetch(_: FetchRequest) -> object:
    return ProduceResponse(1)


async def _metadata(request: MetadataRequest) -> MetadataResponse:
    raise ApiError(ErrorCode.NOT_CONTROLLER, f"ask broker 3 about {request.topics}")


async def _stop_replica(_: StopReplicaRequest) -> None:
    raise ZeroDivisionError


HANDLERS: Handlers = {
    ProduceRequest: _produce,
    FetchRequest: _fetch,
    MetadataRequest: _metadata,
    StopReplicaRequest: _stop_replica,
}

Serve = Callable[[Handlers], FrameStream]


@pytest.fixture
def serve_in_memory(nursery: trio.Nursery) -> Serve:
    """Serve one connection, and return the client's end of it."""

    def serve(handlers: Handlers) -> FrameStream:
        ours, theirs = memory_stream_pair()

        async def serve_and_close() -> None:
            async with theirs:
                await serve_stream(theirs, handlers, max_frame_bytes=LIMIT)

        nursery.start_soon(serve_and_close)
        return FrameStream(ours)

    return serve


async def _receive(frames: FrameStream) -> ResponseEnvelope:
    payload = await frames.receive()
    assert payload is not None
    return ResponseEnvelope.unpack(payload)


async def _ask(
    frames: FrameStream, key: int, body: bytes, *, version: int = 0, correlation: int = 7
) -> ResponseEnvelope:
    await frames.send(frame(RequestEnvelope(key, version, correlation, "me", body).pack()))
    return await _receive(frames)


def _error(response: ResponseEnvelope) -> tuple[ErrorCode, str]:
    return ErrorCode(response.error), decode(str, response.body)


def _produce_body(partition: int, seconds: int = 0) -> bytes:
    return encode(ProduceRequest("t", partition, -1, seconds, ()))


async def test_versions_are_offered_for_what_has_a_handler_and_for_themselves(serve_in_memory: Serve) -> None:
    response = await _ask(serve_in_memory(HANDLERS), VERSIONS, encode(ApiVersionsRequest()))
    highest = {PRODUCE: 0, FETCH: 1, METADATA: 5, STOP_REPLICA: 1, VERSIONS: 0}
    expected = tuple(ApiVersion(key, 0, version) for key, version in highest.items())
    assert decode(ApiVersionsResponse, response.body) == ApiVersionsResponse(expected)


async def test_requests_are_answered_in_order_one_at_a_time(serve_in_memory: Serve, autojump_clock: MockClock) -> None:
    frames = serve_in_memory(HANDLERS)
    began = autojump_clock.current_time()
    requests = [
        frame(RequestEnvelope(PRODUCE, 0, n, "me", _produce_body(n, seconds)).pack())
        for n, seconds in enumerate((30, 10, 20))
    ]
    await frames.send(b"".join(requests))
    responses = [await _receive(frames) for _ in requests]
    assert [response.correlation_id for response in responses] == [0, 1, 2]
    assert [decode(ProduceResponse, response.body).base_offset for response in responses] == [0, 1, 2]
    assert autojump_clock.current_time() - began == pytest.approx(60)


@pytest.mark.parametrize(
    ("key", "version", "sentence"),
    [
        (9999, 0, "There is no api with key 9999 here."),
        (CREATE_TOPICS, 0, "There is no api with key 19 here."),
        (METADATA, 6, "Metadata is supported in versions 0 to 5, not 6."),
        (METADATA, -1, "Metadata is supported in versions 0 to 5, not -1."),
    ],
)
async def test_an_unknown_api_or_version_is_answered_with_a_sentence(
    serve_in_memory: Serve, key: int, version: int, sentence: str
) -> None:
    response = await _ask(serve_in_memory(HANDLERS), key, b"\x90", version=version)
    assert _error(response) == (ErrorCode.UNSUPPORTED_VERSION, sentence)


@pytest.mark.parametrize("body", [b"\x90", b"\xc1", b"\x91" * 900, msgpack.packb(["t", 0, -1, 0, "no array"]), b""])
async def test_a_body_that_is_not_the_message_is_refused_and_the_connection_goes_on(
    serve_in_memory: Serve, body: bytes
) -> None:
    frames = serve_in_memory(HANDLERS)
    code, sentence = _error(await _ask(frames, PRODUCE, body))
    assert code is ErrorCode.INVALID_REQUEST
    assert sentence.startswith("This is not a valid Produce request: ")
    assert (await _ask(frames, PRODUCE, _produce_body(1))).error == ErrorCode.NONE


async def test_an_api_error_of_a_handler_is_its_answer(serve_in_memory: Serve) -> None:
    response = await _ask(serve_in_memory(HANDLERS), METADATA, encode(MetadataRequest(("t",))), correlation=-5)
    assert response.correlation_id == -5
    assert _error(response) == (ErrorCode.NOT_CONTROLLER, "ask broker 3 about ('t',)")


@pytest.mark.parametrize(
    ("key", "name", "request_body"),
    [
        pytest.param(STOP_REPLICA, "StopReplica", encode(StopReplicaRequest(1, 1, 1, ())), id="raises"),
        pytest.param(FETCH, "Fetch", encode(FetchRequest(-1, 0, ())), id="returns another response"),
    ],
)
async def test_a_fault_of_a_handler_is_logged_and_answered_and_the_connection_goes_on(
    serve_in_memory: Serve, key: int, name: str, request_body: bytes
) -> None:
    frames = serve_in_memory(HANDLERS)
    with capture_logs() as logs:
        response = await _ask(frames, key, request_body)
    assert _error(response) == (ErrorCode.UNKNOWN_SERVER_ERROR, f"{name} failed; the server's log says why.")
    assert [(log["log_level"], log["api"]) for log in logs] == [("error", name)]
    assert (await _ask(frames, PRODUCE, _produce_body(1))).error == ErrorCode.NONE


async def test_a_request_that_lists_too_much_is_refused_and_the_connection_goes_on(
    serve_in_memory: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MetadataRequest, "max_listed", 2)
    frames = serve_in_memory(HANDLERS)
    error, text = _error(await _ask(frames, METADATA, encode(MetadataRequest(("a", "b", "c")))))
    fault = (
        "This Metadata is too large: topics lists 3 entries, more than the limit of 2. Split it into several requests."
    )
    assert (error, text) == (ErrorCode.INVALID_REQUEST, fault)
    assert _error(await _ask(frames, METADATA, encode(MetadataRequest(("a", "b")))))[0] is ErrorCode.NOT_CONTROLLER


async def test_an_answer_over_the_limit_is_refused(serve_in_memory: Serve) -> None:
    async def many(_: MetadataRequest) -> MetadataResponse:
        return MetadataResponse(None, 1, (BrokerEndpoint(1, "h" * LIMIT, 1),), ())

    code, sentence = _error(await _ask(serve_in_memory({MetadataRequest: many}), METADATA, encode(MetadataRequest())))
    assert code is ErrorCode.INVALID_REQUEST
    assert "exceeds the limit of 1000" in sentence


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="an announcement of 1.2 GB"),
        pytest.param(frame(b"\xc1"), id="no envelope"),
        pytest.param(frame(b"\x95" + b"\x91" * 900), id="a nested envelope"),
        pytest.param(b"\x00\x00\x00\x00", id="an empty frame"),
        pytest.param((LIMIT + 1).to_bytes(4, "big"), id="a frame over the limit"),
    ],
)
async def test_what_is_no_request_ends_the_connection(serve_in_memory: Serve, data: bytes) -> None:
    frames = serve_in_memory(HANDLERS)
    with capture_logs() as logs:
        await frames.send(data)
        assert await frames.receive() is None
    assert [log["log_level"] for log in logs] == ["warning"]


async def test_requests_before_a_broken_one_are_answered(serve_in_memory: Serve) -> None:
    frames = serve_in_memory(HANDLERS)
    await frames.send(frame(RequestEnvelope(PRODUCE, 0, 1, "me", _produce_body(4)).pack()) + b"\xff\xff\xff\xff")
    assert (await _receive(frames)).error == ErrorCode.NONE
    assert await frames.receive() is None


async def test_a_peer_that_leaves_during_its_request_is_noticed_when_the_answer_is_written() -> None:
    finished = trio.Event()
    proceed = trio.Event()

    async def slow(_: FetchRequest) -> FetchResponse:
        await proceed.wait()
        finished.set()
        return FetchResponse(())

    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve_stream, theirs, {FetchRequest: slow}))
        await ours.send_all(frame(RequestEnvelope(FETCH, 0, 1, "me", encode(FetchRequest(-1, 0, ()))).pack()))
        await ours.aclose()
        proceed.set()
    assert finished.is_set()


async def test_a_handler_that_gives_up_is_cancelled_when_its_peer_leaves() -> None:
    begun = trio.Event()

    async def endless(_: FetchRequest) -> FetchResponse:
        begun.set()
        await trio.sleep_forever()
        raise AssertionError

    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve_stream, theirs, {FetchRequest: endless}, gives_up=True))
        await ours.send_all(frame(RequestEnvelope(FETCH, 0, 1, "me", encode(FetchRequest(-1, 0, ()))).pack()))
        await begun.wait()
        await ours.aclose()


@pytest.mark.parametrize("ahead", [3, 4_000])
async def test_who_sends_its_next_requests_ahead_has_them_answered_by_one_that_gives_up(ahead: int) -> None:
    """Of very many only a part is read while another is handled."""
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve_stream, theirs, HANDLERS, gives_up=True))
        frames = FrameStream(ours)
        requests = [RequestEnvelope(PRODUCE, 0, n, "me", _produce_body(n)).pack() for n in range(ahead)]
        await frames.send(b"".join(map(frame, requests)))
        answers = [decode(ProduceResponse, (await _receive(frames)).body) for _ in range(ahead)]
        assert [answer.base_offset for answer in answers] == list(range(ahead))
        await ours.aclose()
