"""Random and mutated bytes: they end their own connection or get an error, and do nothing else.

Against a live server many of them each time, the same ones; and some new ones, more under hypothesis's soak profile.
Against a client as the answer to its request.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any, Final

import pytest
import trio
from hypothesis import given, strategies as st
from structlog.testing import capture_logs
from trio.testing import memory_stream_pair

from transport.errors import ApiError, ErrorCode
from transport.messages import (
    APIS,
    AlterPartitionReassignmentsRequest,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BrokerEndpoint,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    PartitionState,
    ProduceRequest,
    ProduceResponse,
    ReassignablePartition,
    Request,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.wire import (
    Connection,
    ConnectionBroken,
    FrameDecoder,
    Handlers,
    decode,
    encode,
    frame,
    open_connection,
    serve,
)
from transport.wire.envelope import RequestEnvelope, ResponseEnvelope

HOST: Final = "127.0.0.1"
GRACE_SECONDS: Final = 30
"""Within which the server ends a connection whose client will send no more."""

_STATE: Final = PartitionState("orders", "id-1", 0, 3, 1, 5, (1, 2), 7, (1, 2, 3), (3,))
_ENDPOINT: Final = BrokerEndpoint(1, HOST, 9091, "rack")
SAMPLES: Final[tuple[Request[Any], ...]] = (
    ApiVersionsRequest(),
    ProduceRequest("orders", 0, -1, 0, (b"value",)),
    MetadataRequest(("orders",)),
    LeaderAndIsrRequest(1001, 3, 77, (LeaderAndIsrPartition(_STATE, is_new=True),)),
    UpdateMetadataRequest(1001, 3, 77, _ENDPOINT, (_ENDPOINT,), (_STATE,)),
    StopReplicaRequest(1001, 3, 77, (StopReplicaPartition("orders", "id-1", 0, 6, delete=True),)),
    AlterPartitionReassignmentsRequest((ReassignablePartition("orders", 0, (1, 2)),)),
    ListPartitionReassignmentsRequest((TopicPartition("orders", 0),)),
)
API_KEYS: Final = {api.request: api.key for api in APIS}
PAYLOADS: Final = tuple(
    RequestEnvelope(API_KEYS[type(request)], 0, number, "fuzz", encode(request)).pack()
    for number, request in enumerate(SAMPLES)
)

# --- bytes ------------------------------------------------------------------------------------------------------


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with one thing about them changed."""
    start, end = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    noise = rng.randbytes(rng.randint(1, 8))
    match rng.randrange(7):
        case 0:
            return data[:start] + bytes([rng.randrange(256)]) + data[start + 1 :]
        case 1:
            return data[:start]
        case 2:
            return data[:start] + data[end:]
        case 3:
            return data[:end] + data[start:]
        case 4:
            return data[:start] + noise + data[start:]
        case 5:
            return data + noise
        case _:
            # What starts an array, a map, a string, bytes or an extension of up to four billion elements.
            return data[:start] + bytes([rng.randrange(0xC0, 0xE0)]) + b"\xff" * 4 + data[start:]


def hostile_stream(rng: random.Random) -> bytes:
    """Return what a hostile client sends: requests, mutated within their frames and as a stream, or plain noise."""
    if rng.random() < 0.1:
        return rng.randbytes(rng.randint(1, 200))
    payloads = [rng.choice(PAYLOADS) for _ in range(rng.randint(1, 3))]
    for _ in range(rng.randint(1, 3)):
        chosen = rng.randrange(len(payloads))
        payloads[chosen] = mutated(payloads[chosen], rng)
    stream = b"".join(map(frame, payloads))
    return mutated(stream, rng) if rng.random() < 0.3 else stream


# --- both ends --------------------------------------------------------------------------------------------------


async def _produce(request: ProduceRequest) -> ProduceResponse:
    return ProduceResponse(len(request.values))


async def _refuse(request: object) -> object:
    encode(request)  # what could be decoded can be encoded
    raise ApiError(ErrorCode.NOT_CONTROLLER, f"{request}")


HANDLERS: Handlers = {api.request: _refuse for api in APIS if api.request is not ApiVersionsRequest} | {
    ProduceRequest: _produce
}


async def attack(port: int, data: bytes) -> bytes:
    """Send bytes and no more, and return all that the server answers until it ends the connection."""
    answered = b""
    with trio.fail_after(GRACE_SECONDS):
        stream = await trio.open_tcp_stream(HOST, port)
        async with stream:
            try:
                await stream.send_all(data)
                await stream.send_eof()
                async for part in stream:
                    answered += part
            except trio.BrokenResourceError:  # it was closed with bytes of ours unread
                pass
    return answered


def require_answers(data: bytes, most: int) -> None:
    """Require whole responses, each with the response of an api or a sentence about an error."""
    decoder = FrameDecoder()
    decoder.feed(data)
    count = 0
    while (payload := decoder.next_frame()) is not None:
        count += 1
        response = ResponseEnvelope.unpack(payload)
        if response.error != ErrorCode.NONE:
            assert ErrorCode(response.error) in {
                ErrorCode.INVALID_REQUEST,
                ErrorCode.UNSUPPORTED_VERSION,
                ErrorCode.NOT_CONTROLLER,
            }
            assert decode(str, response.body)
    assert count <= most


async def require_service(connection: Connection) -> None:
    """Require that a well-behaved client is answered."""
    assert await connection.call(ProduceRequest("orders", 0, 1, 0, (b"a", b"b"))) == ProduceResponse(2)


async def attack_repeatedly(rng: random.Random, times: int) -> None:
    """Let hostile clients at a server, one after another, while a well-behaved one stays connected."""
    async with trio.open_nursery() as nursery:
        port = await nursery.start(serve, TcpNetwork(), HANDLERS, HOST, 0)
        with capture_logs() as logs:
            async with open_connection(TcpNetwork(), HOST, port, client_id="good") as bystander:
                for _ in range(times):
                    data = hostile_stream(rng)
                    require_answers(await attack(port, data), most=len(data) // 5)
                    await require_service(bystander)
            async with open_connection(TcpNetwork(), HOST, port, client_id="new") as newcomer:
                await require_service(newcomer)
        assert {(log["log_level"], log["event"]) for log in logs} <= {
            ("warning", "connection closed: the peer did not send a valid request")
        }
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2, 3))])
async def test_hostile_clients_harm_nobody_but_themselves(seed: int) -> None:
    await attack_repeatedly(random.Random(seed), 2_000)


@given(st.randoms(use_true_random=False))
def test_no_hostile_client_harms_anybody_but_itself(rng: random.Random) -> None:
    trio.run(attack_repeatedly, rng, 3)


ANSWERS: Final = tuple(
    ResponseEnvelope(0, error, encode(body)).pack()
    for error, body in (
        (ErrorCode.NONE, ApiVersionsResponse((ApiVersion(0, 0, 3), ApiVersion(18, 0, 0)))),
        (ErrorCode.UNSUPPORTED_VERSION, "This is too old."),
    )
)


@given(st.sampled_from(ANSWERS), st.integers(1, 3), st.randoms(use_true_random=False))
def test_whatever_is_answered_is_a_response_or_an_error_or_breaks_the_connection(
    answer: bytes, mutations: int, rng: random.Random
) -> None:
    for _ in range(mutations):
        answer = mutated(answer, rng)
    stream = mutated(frame(answer), rng) if rng.random() < 0.3 else frame(answer)

    async def ask() -> None:
        ours, theirs = memory_stream_pair()
        await theirs.send_all(stream)
        await theirs.send_eof()
        connection = Connection(ours, peer="peer", client_id="me")
        for _ in range(3):
            with suppress(ApiError, ConnectionBroken):
                assert isinstance(await connection.call(ApiVersionsRequest()), ApiVersionsResponse)
        with pytest.raises(ConnectionBroken):  # there is no more to read
            await connection.call(ApiVersionsRequest())

    trio.run(ask)
