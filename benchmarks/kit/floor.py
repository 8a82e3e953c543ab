"""The floor of an event: the same data read or written in bulk, decoded as JSON, packed once, and told to brokers once.

The floor makes no decisions and keeps no state, and does one thing after another: a controller on this store can only
be faster by what it does while it waits.
"""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import msgpack
import orjson
import trio
from attrs import define, field, frozen
from msgspec import Raw

from benchmarks.kit.cluster import Shape, multis, topic_id
from benchmarks.kit.times import Times, taking_time
from transport.messages import (
    BrokerEndpoint,
    LeaderAndIsrRequest,
    PartitionState,
    Request,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from transport.metadata import ReplicaAssignment
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import MetadataStore, Op
from transport.wire import encode, frame
from transport.wire.apis import OURS
from transport.wire.envelope import RequestEnvelope
from transport.wire.frame_stream import FrameStream
from transport.zookeeper_server import HOST

CHUNKS: Final = (500, 1000, 2000)
"""The numbers of operations in a multi that are tried; the fastest counts."""

PARTITIONS_PER_REQUEST: Final = 10_000
CONTROLLER: Final = BrokerEndpoint(1001, HOST, 1)
EPOCHS: Final = (CONTROLLER.id, 1, 1)


async def read_floor(store: MetadataStore, shape: Shape) -> Times:
    """Read the topics and the states, then decode them."""
    topics = [paths.topic(name) for name in shape.names()]
    states = [paths.partition_state(tp) for tp in shape.tps()]
    gc.collect()
    with taking_time() as read:
        found = [*await store.read(topics), *await store.read(states)]
    return read[0] + decoding_floor([znode.data for znode in found if znode is not None])


async def write_floor(store: MetadataStore, attempts: Sequence[Sequence[Op]], data: Sequence[bytes]) -> Times:
    """Write each attempt with another size of multi; the fastest counts. Then decode the data."""
    taken = []
    for ops, chunk in zip(attempts, CHUNKS, strict=False):
        cut = multis(ops, chunk)
        gc.collect()
        with taking_time() as times:
            for multi in cut:
                await store.multi(multi)
        taken += times
    return min(taken, key=lambda times: times.wall) + decoding_floor(data)


def decoding_floor(data: Iterable[bytes]) -> Times:
    """Decode JSON."""
    with taking_time() as decoded:
        for item in data:
            orjson.loads(item)
    return decoded[0]


# --- telling brokers ------------------------------------------------------------------------------------------------


@frozen
class News:
    """Orders and news about a partition: its state for all, for some to lead or follow it, for some to stop."""

    state: PartitionState
    led: tuple[int, ...] = ()
    stopped: tuple[int, ...] = ()


@define
class _Requests:
    """The bodies of the requests to one broker."""

    leader_and_isr: list[bytes] = field(factory=list)
    stop_replica: list[bytes] = field(factory=list)


async def telling_floor(ports: Mapping[int, int], news: Sequence[News]) -> Times:
    """Pack each state once, and send it to all brokers that are told, whose ports are given by id."""
    async with _connected(ports) as streams:
        gc.collect()
        with taking_time() as told:
            payloads = _payloads(list(ports), news)
            async with trio.open_nursery() as nursery:
                for broker_id, stream in streams.items():
                    nursery.start_soon(_send_all, stream, payloads[broker_id])
    return told[0]


@asynccontextmanager
async def _connected(ports: Mapping[int, int]) -> AsyncIterator[dict[int, FrameStream]]:
    async with AsyncExitStack() as stack:
        network = TcpNetwork()
        streams = [await stack.enter_async_context(await network.connect(HOST, port)) for port in ports.values()]
        yield dict(zip(ports, map(FrameStream, streams), strict=True))


async def _send_all(stream: FrameStream, payloads: Sequence[bytes]) -> None:
    """Send requests, each when the one before has been answered."""
    for payload in payloads:
        await stream.send(frame(payload))
        await stream.receive()


def _payloads(brokers: Sequence[int], news: Sequence[News]) -> dict[int, list[bytes]]:
    """Return the requests to each broker."""
    metadata: list[bytes] = []
    requests = {broker_id: _Requests() for broker_id in brokers}
    for one in news:
        packed = encode(one.state)
        metadata.append(packed)
        if one.led:
            told = b"\x92" + packed + b"\xc2"  # an array of the state and False
            for broker_id in one.led:
                requests[broker_id].leader_and_isr.append(told)
        if one.stopped:
            told = encode(_stop(one.state))
            for broker_id in one.stopped:
                requests[broker_id].stop_replica.append(told)
    same = _packed(UpdateMetadataRequest, metadata, CONTROLLER, None)
    return {
        broker_id: [
            *_packed(LeaderAndIsrRequest, of.leader_and_isr),
            *same,
            *_packed(StopReplicaRequest, of.stop_replica),
        ]
        for broker_id, of in requests.items()
    }


def _stop(state: PartitionState) -> StopReplicaPartition:
    return StopReplicaPartition(state.topic, state.topic_id, state.partition, state.leader_epoch, delete=True)


def _packed(kind: type[Request[object]], items: Sequence[bytes], *more: object) -> list[bytes]:
    """Return requests with packed items; `more` are the fields between the epochs and these."""
    api, packer = OURS.by_request[kind], msgpack.Packer()
    payloads: list[bytes] = []
    for start in range(0, len(items), PARTITIONS_PER_REQUEST):
        part = items[start : start + PARTITIONS_PER_REQUEST]
        body = encode((*EPOCHS, *more, Raw(packer.pack_array_header(len(part)) + b"".join(part))))
        payloads.append(RequestEnvelope(api.key, api.max_version, len(payloads), "floor", body).pack())
    return payloads


# --- what they are told ---------------------------------------------------------------------------------------------

Replicas = tuple[int, ...]
Recipients = Callable[[Replicas], tuple[Replicas, Replicas]]
"""Returns for the replicas of a partition which of them lead or follow it, and which stop."""


def news_of(shape: Shape, states: Mapping[str, bytes], recipients: Recipients) -> list[News]:
    """Return what brokers are told of those partitions of a cluster whose state is given by its path."""
    news = []
    for number, tp in enumerate(shape.tps()):
        data = states.get(paths.partition_state(tp))
        if data is not None:
            replicas = shape.replicas(number)
            leadership = formats.decode_partition_state(tp, data, 1)
            assignment = ReplicaAssignment(replicas)
            id_ = topic_id(shape.first_topic + number // shape.partitions_per_topic)
            news.append(News(PartitionState.of(tp, id_, assignment, leadership), *recipients(replicas)))
    return news
