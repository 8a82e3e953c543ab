"""Damaged frames between brokers and the controller end a connection at most, never the office."""

from __future__ import annotations

import random
from struct import pack

import pytest
import trio
from attrs import define, evolve, field, frozen
from structlog.testing import capture_logs

from tests.kafka.scripted_broker import HOST, ScriptedBroker, scripted_brokers
from tests.kafka.test_kafka_node import KAFKA, TP, create_topic, epoch_of, proposal
from tests.kit.service import Controllers, until
from transport.kafka import messages as kafka
from transport.kafka.apis import KAFKA_APIS
from transport.kafka.client import MAX_ANSWER_BYTES
from transport.kafka.codec import encode
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.header import RequestHeader, pack_request
from transport.kafka.schema import Message
from transport.kafka.server import MAX_REQUEST_BYTES
from transport.network import TcpNetwork
from transport.store.memory import MemoryZooKeeper
from transport.wire.frame_stream import FrameStream
from transport.wire.frames import frame

ANSWERED = {7, 18, 19, 20, 37, 43, 46, 56, 67}
"""The requests of brokers and administrators that a controller answers without any rights."""

DAMAGED = 60
"""The damaged copies of each request."""


@frozen
class Sent:
    """A request in a version, as the payload of a frame."""

    payload: bytes

    @classmethod
    def of(cls, message: Message, version: int) -> Sent:
        """Pack a request."""
        header = RequestHeader(message.api_key, version, 1, "broker-1")
        return cls(pack_request(type(message), header, encode(message, version)))

    def damaged(self, rng: random.Random) -> Sent:
        """Cut the request off, or change up to three of its bytes after the key of the api."""
        if rng.random() < 0.3:
            return evolve(self, payload=self.payload[: rng.randrange(len(self.payload))])
        changed = bytearray(self.payload)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(2, len(changed))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        return evolve(self, payload=bytes(changed))


async def answer_to(port: int, framed: bytes) -> bytes | None:
    """Send bytes and end the stream; return the payload of the answer, None if the controller ended it first."""
    stream = await trio.open_tcp_stream(HOST, port)
    try:
        await stream.send_all(framed)
        await stream.send_eof()
        with trio.fail_after(10):
            return await FrameStream(stream).receive()
    except trio.BrokenResourceError:
        return None
    finally:
        await stream.aclose()


@pytest.mark.parametrize("seed", range(3))
async def test_damaged_requests_cost_their_connection_at_most(
    controllers: Controllers, memory: MemoryZooKeeper, seed: int
) -> None:
    rng, outcomes = random.Random(seed), set[bool]()
    service = await controllers.start_active(**KAFKA)
    async with memory.session() as store, scripted_brokers(store, 1, 2):
        await until(lambda: service.office is not None and len(service.office.context.brokers) == 2)
        led = await create_topic(service, 2)
        assert service.node is not None
        [at] = service.node.listeners
        sound = [Sent.of(proposal(service, led, (led.leader,), version), version) for version in range(4)]
        sound += [Sent.of(kafka.ControlledShutdownRequest(9, 1), version) for version in range(2, 4)]
        sound += [Sent.of(kafka.AllocateProducerIdsRequest(1, epoch_of(service, 1)), 0)]
        office = service.office
        with capture_logs() as logs:
            for each in sound * DAMAGED:
                answered = await answer_to(at.port, frame(each.damaged(rng).payload))
                outcomes.add(answered is None)
        assert outcomes == {True, False}
        assert [line for line in logs if line["log_level"] in {"error", "critical"}] == []
        assert (service.office, service.quarantine_size()) == (office, 0)
        assert office is not None
        assert TP in office.context.leadership
        async with open_kafka_connection(TcpNetwork(), at.host, at.port, client_id="broker-1") as connection:
            asked = kafka.AllocateProducerIdsRequest(1, epoch_of(service, 1))
            assert (await connection.send(asked, kafka.AllocateProducerIdsResponse, 0)).error_code == 0


@define
class GarblingBroker(ScriptedBroker):
    """A broker that answers the first connections with garbage, and those after them as it should."""

    garbage: list[bytes] = field(factory=list)

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve a connection."""
        if not self.garbage:
            await super().serve(stream)
            return
        await FrameStream(stream).receive()
        await stream.send_all(self.garbage.pop(0))


async def test_a_broker_that_answers_garbage_is_asked_again(controllers: Controllers, memory: MemoryZooKeeper) -> None:
    garbage = [
        frame(random.Random(1).randbytes(500)),
        frame(pack(">i", 0) + b"\xff" * 9),
        pack(">i", MAX_ANSWER_BYTES + 1),
    ]
    service, broker = await controllers.start_active(**KAFKA), GarblingBroker(1, garbage=list(garbage))
    office = service.office
    async with memory.session() as store, trio.open_nursery() as nursery:
        with capture_logs() as logs:
            await broker.listen(nursery)
            await broker.register(store)
            await until(lambda: bool(broker.told(kafka.UpdateMetadataRequest)))
        nursery.cancel_scope.cancel()
    told = [line["event"] for line in logs if line["log_level"] not in {"debug", "info"}]
    assert told == ["trying again"] * len(garbage)
    assert service.office is office


@pytest.mark.parametrize("length", [-1, 2**31 - 1, MAX_REQUEST_BYTES + 1])
async def test_an_impossible_length_ends_the_connection(controllers: Controllers, length: int) -> None:
    service = await controllers.start(**KAFKA)
    assert service.node is not None
    assert await answer_to(service.node.listeners[0].port, pack(">i", length) + bytes(100)) is None


@pytest.mark.parametrize("key", [*sorted(set(KAFKA_APIS) - ANSWERED), 0, 9_999, -1])
async def test_what_is_not_asked_of_a_controller_ends_the_connection(controllers: Controllers, key: int) -> None:
    service = await controllers.start(**KAFKA)
    assert service.node is not None
    payload = pack(">hhih", key, 0, 1, -1) + bytes(20)
    assert await answer_to(service.node.listeners[0].port, frame(payload)) is None
