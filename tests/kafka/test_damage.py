"""Frames that are damaged at any place, in either direction: an error, a closed connection, little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from struct import pack

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import memory_stream_pair

from tests.kafka.damage import Damage, damaged, pieces_of, sample
from tests.kafka.random_messages import VERSIONS, name_of
from transport.kafka import messages as kafka
from transport.kafka.apis import KAFKA_APIS
from transport.kafka.client import MAX_ANSWER_BYTES, KafkaConnection
from transport.kafka.codec import decode, encode
from transport.kafka.header import RequestHeader, pack_request, pack_response
from transport.kafka.messages.alter_partition_request import TopicData
from transport.kafka.schema import Message, Versions
from transport.kafka.server import MAX_REQUEST_BYTES, Handlers, KafkaRequest, serve_stream
from transport.security import sasl
from transport.security.sasl import SaslServer
from transport.wire.errors import CodecError, ConnectionBroken
from transport.wire.frame_stream import FrameStream
from transport.wire.frames import frame

LOGIN = (kafka.SaslHandshakeRequest, kafka.SaslAuthenticateRequest)
BY_BROKERS = (kafka.AllocateProducerIdsRequest, kafka.AlterPartitionRequest, kafka.ControlledShutdownRequest)
SERVED = (kafka.ApiVersionsRequest, *LOGIN, *BY_BROKERS)
ORDERS = (kafka.LeaderAndIsrRequest, kafka.StopReplicaRequest, kafka.UpdateMetadataRequest)
ASKED = (kafka.ApiVersionsRequest, *LOGIN, *ORDERS)
LITTLE = 128 * 1024
"""More bytes than a small message may take, however it is damaged."""


def versions_of(kinds: tuple[type[Message], ...]) -> list[tuple[type[Message], int]]:
    """Return the versions of some requests that Klamm's servers answer."""
    return [(kind, version) for kind, version in VERSIONS if kind in kinds and version in served(kind)]


def served(kind: type[Message]) -> Versions:
    return KAFKA_APIS[kind.api_key].served


@contextmanager
def at_most(limit: int) -> Iterator[None]:
    """Require that a block takes no more memory than that at any time."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit


@pytest.mark.parametrize(("kind", "version"), VERSIONS, ids=name_of)
def test_no_damaged_body_is_a_message(kind: type[Message], version: int) -> None:
    whole, pieces = sample(kind, version), pieces_of(sample(kind, version), version)
    assert decode(kind, version, b"".join(piece.data for piece in pieces)) == whole
    for damage in Damage:
        for body in damaged(kind, version, damage):
            with pytest.raises(CodecError):
                decode(kind, version, body)


def few(kind: type[Message], version: int, kinds: Iterable[Damage] = Damage) -> list[bytes]:
    """Return some bodies with each kind of damage, from the first to the last place."""
    of_each = [list(damaged(kind, version, damage)) for damage in kinds]
    return [body for bodies in of_each for body in (*bodies[:: max(len(bodies) // 4, 1)], *bodies[-1:])]


async def take(request: KafkaRequest) -> Message:
    raise AssertionError(f"{request} is no request")


HANDLERS: Handlers = dict.fromkeys(BY_BROKERS, take)


async def closes(framed: bytes, server: SaslServer | None) -> list[str]:
    """Require that a server closes a connection without an answer; return what it logs."""
    ours, theirs = memory_stream_pair()
    with capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve_stream, theirs, HANDLERS, sasl=server))
            await ours.send_all(framed)
            assert await ours.receive_some() == b""
    return [line["event"] for line in logs]


@pytest.mark.parametrize(("kind", "version"), versions_of(SERVED), ids=name_of)
async def test_a_damaged_request_is_not_answered(kind: type[Message], version: int) -> None:
    server = SaslServer(sasl.MECHANISMS) if kind in LOGIN else None
    header = RequestHeader(kind.api_key, version, 1, None if kind is kafka.ControlledShutdownRequest else "broker-1")
    bodies = few(kind, version, set(Damage) - {Damage.LONGER})
    with at_most(LITTLE * 2):
        for body in bodies:
            told = await closes(frame(pack_request(kind, header, body)), server)
            assert told == ["connection closed: the peer did not send a valid request"]


@pytest.mark.parametrize(
    ("kind", "version"), versions_of((*BY_BROKERS, kafka.AlterUserScramCredentialsRequest)), ids=name_of
)
async def test_bytes_after_a_request_are_not_read(kind: type[Message], version: int) -> None:
    """As by Kafka's servers: librdkafka ends its AlterUserScramCredentials with a byte too many."""
    taken: list[Message] = []

    async def answer(request: KafkaRequest) -> Message:
        await trio.lowlevel.checkpoint()
        taken.append(request.message)
        return KAFKA_APIS[kind.api_key].response()

    longer = list(damaged(kind, version, Damage.LONGER))
    header = RequestHeader(kind.api_key, version, 1, None if kind is kafka.ControlledShutdownRequest else "broker-1")
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve_stream, theirs, {kind: answer}))
        for body in longer:
            await ours.send_all(frame(pack_request(kind, header, body)))
            assert await FrameStream(ours).receive() is not None
        await ours.aclose()
    assert taken == [sample(kind, version)] * len(longer)


@asynccontextmanager
async def answered(answer: bytes) -> AsyncIterator[KafkaConnection]:
    """Connect to a server that answers a request with these bytes."""
    ours, theirs = memory_stream_pair()

    async def serve() -> None:
        await FrameStream(theirs).receive()
        await theirs.send_all(answer)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        yield KafkaConnection(ours, peer="broker-1", client_id="klamm")
        assert await theirs.receive_some() == b"", "the client closes its end"


@pytest.mark.parametrize(("kind", "version"), versions_of(ASKED), ids=name_of)
async def test_a_damaged_answer_breaks_the_connection(kind: type[Message], version: int) -> None:
    response = KAFKA_APIS[kind.api_key].response
    request = sample(kind, version)
    bodies = few(response, version)
    with at_most(LITTLE * 2):
        for body in bodies:
            async with answered(frame(pack_response(response, version, 0, body))) as connection:
                with pytest.raises(ConnectionBroken, match="the connection to broker-1 broke: "):
                    await connection.send(request, response, version)
                with pytest.raises(ConnectionBroken, match="is closed"):
                    await connection.send(request, response, version)


@pytest.mark.parametrize("length", [0, -1, -(2**31), MAX_REQUEST_BYTES + 1, 2**31 - 1])
async def test_a_request_of_an_impossible_length_is_not_awaited(length: int) -> None:
    with at_most(LITTLE):
        assert await closes(pack(">i", length) + bytes(64), None) == [
            "connection closed: the peer did not send a valid request"
        ]


@pytest.mark.parametrize("length", [0, -1, -(2**31), MAX_ANSWER_BYTES + 1, 2**31 - 1])
async def test_an_answer_of_an_impossible_length_is_not_awaited(length: int) -> None:
    with at_most(LITTLE):
        async with answered(pack(">i", length) + bytes(64)) as connection:
            with pytest.raises(ConnectionBroken, match=f"a frame of {length} bytes"):
                await connection.send(sample(kafka.UpdateMetadataRequest, 8), kafka.UpdateMetadataResponse, 8)


async def test_memory_is_taken_for_bytes_that_have_come_alone() -> None:
    """A peer that announces the longest request, and sends little of it, takes little."""
    with at_most(LITTLE):
        ours, theirs = memory_stream_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve_stream, theirs, HANDLERS))
            await ours.send_all(pack(">i", MAX_REQUEST_BYTES) + bytes(1_000))
            await trio.testing.wait_all_tasks_blocked()
            await ours.aclose()


def test_the_densest_request_takes_a_multiple_of_its_bytes() -> None:
    topics = (TopicData(),) * 20_000
    body = encode(kafka.AlterPartitionRequest(1, 1, topics), 0)
    assert len(body) < 61_000
    with at_most(25 * len(body)):
        decode(kafka.AlterPartitionRequest, 0, body)
