"""The floor of an event: the same data read or written in bulk, decoded as JSON and packed once.

The floor makes no decisions, keeps no state and sends nothing, so no controller on this store can be faster.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from typing import Final

import orjson

from benchmarks.kit.cluster import Shape, commit_all
from benchmarks.kit.times import Times, taking_time
from transport.messages import BrokerEndpoint, PartitionState, UpdateMetadataRequest
from transport.store import paths
from transport.store.protocol import MetadataStore, Op
from transport.wire import encode

CHUNKS: Final = (500, 1000, 2000)
"""The numbers of operations in a multi that are tried; the fastest counts."""

CONTROLLER: Final = BrokerEndpoint(1001, "127.0.0.1", 1)


async def read_floor(store: MetadataStore, shape: Shape) -> Times:
    """Read the topics and the states, then decode and pack them."""
    states = [
        f"{paths.TOPICS}/{n}/partitions/{p}/state" for n in shape.names() for p in range(shape.partitions_per_topic)
    ]
    topics = [paths.topic(name) for name in shape.names()]
    gc.collect()
    with taking_time() as read:
        found = [*await store.read(topics), *await store.read(states)]
    return read[0] + decoding_floor([znode.data for znode in found if znode is not None])


async def write_floor(store: MetadataStore, attempts: Sequence[Sequence[Op]], data: Sequence[bytes]) -> Times:
    """Write each attempt with another size of multi; the fastest counts. Then decode and pack the data."""
    taken = []
    for ops, chunk in zip(attempts, CHUNKS, strict=False):
        gc.collect()
        with taking_time() as times:
            await commit_all(store, ops, chunk)
        taken += times
    return min(taken, key=lambda times: times.wall) + decoding_floor(data)


def decoding_floor(data: Iterable[bytes]) -> Times:
    """Decode JSON, and pack one UpdateMetadata request with the partitions in it."""
    data = list(data)
    with taking_time() as decoded:
        for item in data:
            orjson.loads(item)
    states = tuple(_state_of(number, item) for number, item in enumerate(data) if b'"isr"' in item)
    with taking_time() as packed:
        encode(UpdateMetadataRequest(1001, 1, 1, CONTROLLER, None, states))
    return decoded[0] + packed[0]


def _state_of(number: int, data: bytes) -> PartitionState:
    value = orjson.loads(data)
    isr = tuple(value["isr"])
    return PartitionState(f"topic-{number:05}", "A" * 22, number % 50, 1, value["leader"], 1, isr, 1, isr)
