"""Brokers of ours that accept every order at once, as a program of its own; see `accepting_brokers.our_brokers`.

The argument is the number of brokers. The first line of output has the port for questions, then those of the brokers.
Questions are lines:

- `since T`, in microseconds since 1970, is answered by a line of JSON: for each api the number of orders since then, of
  the partitions in them and of their bytes, and the time of the last answer. The partitions of UpdateMetadata are not
  counted: reading them would take longer than all else here.
- `controller PORT` has no answer. From then on the leaders among the brokers let replicas join that are being added;
  with 0 for the port they do so no longer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Final, Generic, TypeVar

import orjson
import trio
from attrs import define, field
from msgspec import Struct
from msgspec.msgpack import Decoder

from benchmarks.kit.samples import now
from transport.messages import (
    AlterPartitionItem,
    AlterPartitionRequest,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    PartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from transport.network import TcpNetwork
from transport.wire import encode, frame, open_connection
from transport.wire.apis import OURS
from transport.wire.envelope import RequestEnvelope, ResponseEnvelope
from transport.wire.frame_stream import FrameStream
from transport.zookeeper_server import HOST

P = TypeVar("P")
S = TypeVar("S")

PATIENCE_SECONDS: Final = 3600
LEADER_AND_ISR: Final = OURS.by_request[LeaderAndIsrRequest].key
STOP_REPLICA: Final = OURS.by_request[StopReplicaRequest].key
UPDATE_METADATA: Final = OURS.by_request[UpdateMetadataRequest].key
API_VERSIONS: Final = OURS.by_request[ApiVersionsRequest].key
LOG_DIRS: Final = OURS.by_request[DescribeLogDirsRequest].key
ORDERS: Final = (LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA)


class Named(Struct, array_like=True):
    """The first fields of a partition in StopReplica, and of a state in LeaderAndIsr. The others are not read."""

    topic: str
    topic_id: str
    partition: int


class Led(Struct, Generic[S], array_like=True):
    """A partition in LeaderAndIsr, with as much of its state as is read."""

    state: S


class Order(Struct, Generic[P], array_like=True):
    """The first fields of LeaderAndIsr and StopReplica."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: list[P]


_STOPS: Final = Decoder(Order[Named])
_LEADS: Final = Decoder(Order[Led[Named]])
_WHOLE: Final = Decoder(Order[Led[PartitionState]])
_VERSIONS: Final = tuple(ApiVersion(api.key, api.min_version, api.max_version) for api in OURS.by_key.values())
_ANSWERS: Final = {
    API_VERSIONS: encode(ApiVersionsResponse(_VERSIONS)),
    LOG_DIRS: encode(DescribeLogDirsResponse(())),
    UPDATE_METADATA: encode(UpdateMetadataResponse()),
}


@define
class Brokers:
    """The part that all brokers share: the orders that they took, and the controller's port once they may lead."""

    taken: list[tuple[int, int, int, int, int]] = field(factory=list)
    """The api, the time of arrival, the number of partitions, the bytes, and the time of the answer, by order."""

    controller_port: int | None = None

    def since(self, start: int) -> bytes:
        """Return the sums by api of the orders that arrived since then."""
        sums: dict[str, list[int]] = {}
        for api, received, partitions, size, answered in self.taken:
            if received >= start:
                requests, told, total, last = sums.get(str(api), [0, 0, 0, 0])
                sums[str(api)] = [requests + 1, told + partitions, total + size, max(last, answered)]
        return orjson.dumps(sums)

    async def answer_questions(self, stream: trio.abc.Stream) -> None:
        """Answer questions until the other end closes the connection."""
        unread = b""
        async for part in stream:
            *lines, unread = (unread + part).split(b"\n")
            for line in lines:
                question, number = line.split()
                if question == b"controller":
                    self.controller_port = int(number) or None
                else:
                    await stream.send_all(self.since(int(number)) + b"\n")


@define
class Broker:
    """One broker."""

    id: int
    brokers: Brokers
    joins: trio.MemorySendChannel[AlterPartitionRequest]

    async def take_orders(self, stream: trio.abc.Stream) -> None:
        """Take the orders of a connection until its end."""
        frames = FrameStream(stream)
        try:
            while (payload := await frames.receive()) is not None:
                received, request = now(), RequestEnvelope.unpack(payload)
                body, partitions = self._answer(request)
                await frames.send(frame(ResponseEnvelope(request.correlation_id, 0, body).pack()))
                if request.api_key in ORDERS:
                    self.brokers.taken.append((request.api_key, received, partitions, len(payload), now()))
        except trio.BrokenResourceError:
            pass  # the controller has gone

    def _answer(self, request: RequestEnvelope) -> tuple[bytes, int]:
        """Return the body of the answer, and the number of partitions in the request."""
        if request.api_key == LEADER_AND_ISR:
            led = [item.state for item in _LEADS.decode(request.body).partitions]
            if self.brokers.controller_port is not None:
                self._let_join(_WHOLE.decode(request.body))
            return _success(LeaderAndIsrResponse, led), len(led)
        if request.api_key == STOP_REPLICA:
            stopped = _STOPS.decode(request.body).partitions
            return _success(StopReplicaResponse, stopped), len(stopped)
        return _ANSWERS[request.api_key], 0

    def _let_join(self, order: Order[Led[PartitionState]]) -> None:
        """Ask the controller to take the replicas that are being added into the ISRs of the partitions led here."""
        states = [item.state for item in order.partitions if item.state.leader == self.id]
        joined = [(state, [r for r in state.adding_replicas if r not in state.isr]) for state in states]
        items = [
            AlterPartitionItem(
                *(state.topic, state.topic_id, state.partition, state.leader_epoch),
                (*state.isr, *new),
                state.partition_epoch,
            )
            for state, new in joined
            if new
        ]
        if items:
            self.joins.send_nowait(AlterPartitionRequest(self.id, order.broker_epoch, tuple(items)))

    async def ask_for_joins(self, waiting: trio.MemoryReceiveChannel[AlterPartitionRequest]) -> None:
        """Send AlterPartition, as a leader does: one request at a time."""
        async for request in waiting:
            port = self.brokers.controller_port
            assert port is not None
            async with open_connection(TcpNetwork(), HOST, port, client_id=f"broker-{self.id}") as connection:
                await connection.call(request, timeout=PATIENCE_SECONDS)


def _success(
    response: Callable[[tuple[PartitionError, ...]], LeaderAndIsrResponse | StopReplicaResponse], told: list[Named]
) -> bytes:
    return encode(response(tuple([PartitionError(one.topic, one.partition) for one in told])))


async def run(count: int) -> None:
    """Run brokers, and print their ports."""
    brokers, network = Brokers(), TcpNetwork()
    async with trio.open_nursery() as nursery:
        listen = partial(nursery.start, network.serve)
        ports = [await listen(brokers.answer_questions, HOST, 0)]
        for broker_id in range(count):
            send, receive = trio.open_memory_channel[AlterPartitionRequest](sys.maxsize)
            broker = Broker(broker_id, brokers, send)
            nursery.start_soon(broker.ask_for_joins, receive)
            ports.append(await listen(broker.take_orders, HOST, 0))
        print(*ports, flush=True)


if __name__ == "__main__":
    trio.run(run, int(sys.argv[1]))
