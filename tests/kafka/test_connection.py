"""A client and a server of Kafka's protocol agree on versions, and each survives what the other may send."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from attrs import define
from trio.testing import memory_stream_pair

from tests.kafka.random_messages import VERSIONS, name_of
from transport.kafka.client import KafkaConnection
from transport.kafka.codec import encode
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.header import RequestHeader, pack_request, pack_response, unpack_request, unpack_response
from transport.kafka.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from transport.kafka.messages.api_versions_response import ApiVersion
from transport.kafka.schema import Message
from transport.kafka.server import Handlers, KafkaRequest, serve_stream
from transport.network import StreamHandler
from transport.wire.errors import ConnectionBroken, NotServed, RequestTimedOut, UnsupportedApi
from transport.wire.frame_stream import FrameStream
from transport.wire.frames import frame

KEY = ControlledShutdownRequest.api_key


async def shut_down(request: KafkaRequest) -> ControlledShutdownResponse:
    await trio.lowlevel.checkpoint()
    return ControlledShutdownResponse(error_code=request.message.broker_id)


HANDLERS: Handlers = {ControlledShutdownRequest: shut_down}


@asynccontextmanager
async def connected(serve: Callable[[trio.abc.Stream], Awaitable[None]]) -> AsyncIterator[KafkaConnection]:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, theirs)
        connection = KafkaConnection(ours, peer="broker-1", client_id="klamm")
        yield connection
        await connection.close()
        nursery.cancel_scope.cancel()


async def scripted(stream: trio.abc.Stream, answers: list[bytes]) -> None:
    """Answer each request with the next payload, and end the stream after the last one."""
    frames = FrameStream(stream)
    for payload in answers:
        await frames.receive()
        await frames.send(frame(payload))
    await stream.aclose()


def versions(number: int, offered: dict[int, tuple[int, int]], *, error: int = 0, version: int = 3) -> bytes:
    keys = tuple(ApiVersion(key, first, last) for key, (first, last) in offered.items())
    body = encode(ApiVersionsResponse(error_code=error, api_keys=keys), version)
    return pack_response(ApiVersionsResponse, version, number, body)


async def test_a_client_uses_the_highest_version_that_both_have() -> None:
    async with connected(partial(serve_stream, handlers=HANDLERS)) as connection:
        await connection.negotiate()
        version = connection.version_of(ControlledShutdownRequest)
        assert version == 3
        answer = await connection.send(ControlledShutdownRequest(broker_id=77), ControlledShutdownResponse, version)
        assert answer.error_code == 77


@pytest.mark.parametrize("version", range(4))
async def test_every_version_of_a_request_is_answered(version: int) -> None:
    async with connected(partial(serve_stream, handlers=HANDLERS)) as connection:
        answer = await connection.send(ControlledShutdownRequest(broker_id=7), ControlledShutdownResponse, version)
        assert answer.error_code == 7


async def test_a_client_asks_again_if_the_server_has_no_such_version_of_api_versions() -> None:
    answers = [versions(0, {18: (0, 2)}, error=35, version=0), versions(1, {KEY: (0, 1)}, version=2)]
    async with connected(partial(scripted, answers=answers)) as connection:
        await connection.negotiate()
        assert connection.version_of(ControlledShutdownRequest) == 1


async def test_a_server_answers_an_unknown_version_of_api_versions_in_version_0() -> None:
    async with connected(partial(serve_stream, handlers=HANDLERS)) as connection:
        ours, theirs = memory_stream_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve_stream, theirs, HANDLERS))
            header = RequestHeader(ApiVersionsRequest.api_key, 99, 5, "newer")
            await ours.send_all(frame(pack_request(ApiVersionsRequest, header, b"anything")))
            payload = await FrameStream(ours).receive()
            await ours.aclose()
        assert payload == versions(5, {KEY: (0, 3), 18: (0, 4)}, error=35, version=0)
        await connection.negotiate()


async def test_versions_without_overlap_are_refused_by_name() -> None:
    async with connected(partial(scripted, answers=[versions(0, {KEY: (4, 6)})])) as connection:
        await connection.negotiate()
        with pytest.raises(UnsupportedApi, match="broker-1 offers ControlledShutdown in versions 4 to 6 only"):
            connection.version_of(ControlledShutdownRequest)
        with pytest.raises(UnsupportedApi, match="broker-1 does not offer AlterPartition"):
            connection.version_of(AlterPartitionRequest)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (versions(7, {}), "answered a request that is not the one under way"),
        (b"\0\0\0\0\0\0\x09", "claims a length of 8"),
        (b"\0\0", "ends in the middle of its header"),
    ],
)
async def test_an_answer_that_is_none_breaks_the_connection(answer: bytes, fault: str) -> None:
    async with connected(partial(scripted, answers=[answer])) as connection:
        with pytest.raises(ConnectionBroken, match=fault):
            await connection.negotiate()
        with pytest.raises(ConnectionBroken, match="is closed"):
            await connection.negotiate()


@pytest.mark.usefixtures("autojump_clock")
async def test_a_silent_server_is_given_up_and_the_connection_closed() -> None:
    async def silent(stream: trio.abc.Stream) -> None:
        await FrameStream(stream).receive()
        await trio.sleep_forever()

    async with connected(silent) as connection:
        with pytest.raises(RequestTimedOut, match="broker-1 did not answer ApiVersions within 3 s"):
            await connection.negotiate(timeout=3)
        with pytest.raises(ConnectionBroken):
            await connection.negotiate()


@pytest.mark.parametrize(
    "payload",
    [
        b"\0",
        pack_request(AllocateProducerIdsRequest, RequestHeader(67, 0, 1, None), b""),
        pack_request(ControlledShutdownRequest, RequestHeader(KEY, 9, 1, None), b""),
        pack_request(ControlledShutdownRequest, RequestHeader(KEY, 3, 1, None), b"\0"),
    ],
)
async def test_what_is_not_a_request_of_an_offered_api_closes_the_connection(payload: bytes) -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve_stream, theirs, HANDLERS))
        await ours.send_all(frame(payload))
        assert await ours.receive_some() == b""


@pytest.mark.parametrize(("kind", "version"), VERSIONS, ids=name_of)
def test_headers_read_back(kind: type[Message], version: int) -> None:
    header = RequestHeader(kind.api_key, version, 2**31 - 1, None if kind.api_key == KEY and version == 0 else "ä")
    assert unpack_request(kind, pack_request(kind, header, b"body")) == (header, b"body")
    assert unpack_response(kind, version, pack_response(kind, version, 12, b"body")) == (12, b"body")


def test_the_headers_of_kafka_are_written() -> None:
    """The bytes are those that kafka_wire.md describes."""
    flexible = pack_request(AllocateProducerIdsRequest, RequestHeader(67, 0, 9, "me"), b"!")
    assert flexible == b"\x00\x43" + b"\x00\x00" + b"\x00\x00\x00\x09" + b"\x00\x02me" + b"\x00" + b"!"
    first = pack_request(ControlledShutdownRequest, RequestHeader(7, 0, 9, "me"), b"!")
    assert first == b"\x00\x07" + b"\x00\x00" + b"\x00\x00\x00\x09" + b"!"
    assert pack_response(AllocateProducerIdsResponse, 0, 9, b"!") == b"\x00\x00\x00\x09" + b"\x00" + b"!"
    assert pack_response(ApiVersionsResponse, 3, 9, b"!") == b"\x00\x00\x00\x09" + b"!"


@define
class Network:
    """A network in memory on which an address can be connected to at the third attempt."""

    nursery: trio.Nursery
    fault: OSError
    attempts: int = 0

    async def addresses(self, host: str) -> Sequence[str]:
        return [host]

    async def connect(self, _host: str, _port: int, _address: str | None = None) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        self.attempts += 1
        if self.attempts < 3:
            raise self.fault
        ours, theirs = memory_stream_pair()
        self.nursery.start_soon(partial(serve_stream, theirs, HANDLERS))
        return ours

    async def serve(
        self,
        handler: StreamHandler,
        host: str,
        port: int,
        *,
        task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        raise NotImplementedError


NOT_YET = [
    ConnectionRefusedError("nothing listens"),
    socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
    socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
]


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.parametrize("fault", NOT_YET, ids=["refused", "unknown", "temporary"])
async def test_a_broker_that_cannot_be_reached_yet_is_waited_for(fault: OSError, nursery: trio.Nursery) -> None:
    network = Network(nursery, fault)
    async with open_kafka_connection(network, "broker-1", 9092, client_id="klamm", connect_timeout=5) as connection:
        assert connection.version_of(ControlledShutdownRequest) == 3
    network.attempts = -1_000
    begun = trio.current_time()
    with pytest.raises(NotServed):
        async with open_kafka_connection(network, "broker-1", 9092, client_id="klamm", connect_timeout=5):
            pass
    assert trio.current_time() - begun == pytest.approx(5, abs=0.2)
