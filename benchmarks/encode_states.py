"""UpdateMetadata for many brokers: states packed once and spliced, compared with packing for each, in one run."""

from __future__ import annotations

import gc
import sys
import time
from statistics import median
from typing import Final

from attrs import frozen

from transport.messages import BrokerEndpoint, PartitionState, UpdateMetadataRequest
from transport.wire import encode

PARTITIONS: Final = 100_000
PARTITIONS_PER_TOPIC: Final = 100
BROKERS: Final = 10
ROUNDS: Final = 5
CONTROLLER: Final = BrokerEndpoint(1001, "controller-1", 9090)


@frozen
class PlainState:
    """The fields of a PartitionState, without the cache of its encoding."""

    topic: str
    topic_id: str
    partition: int
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    leader_recovery_state: int
    offline_replicas: tuple[int, ...]


@frozen
class PlainUpdate:
    """The fields of an UpdateMetadataRequest."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    controller: BrokerEndpoint
    live_brokers: tuple[BrokerEndpoint, ...] | None
    partitions: tuple[PlainState, ...]


def values(number: int) -> tuple[str, str, int, int, int, int, tuple[int, ...], int, tuple[int, ...]]:
    """Return the values of a partition's state in the fields without a default."""
    topic, partition = divmod(number, PARTITIONS_PER_TOPIC)
    leader = number % 300
    replicas = leader, leader + 1, leader + 2
    return f"topic-{topic:04}", f"Zm9vYmFyYmF6cXV1{topic:06}", partition, 7, leader, number % 50, replicas, 3, replicas


def encode_plain(partitions: tuple[PlainState, ...], live: tuple[BrokerEndpoint, ...]) -> list[bytes]:
    """Encode a request for each broker, as a whole each time, in one call of msgpack."""
    return [encode(PlainUpdate(1001, 7, epoch, CONTROLLER, live, partitions)) for epoch in range(BROKERS)]


def encode_spliced(partitions: tuple[PartitionState, ...], live: tuple[BrokerEndpoint, ...]) -> list[bytes]:
    """Encode a request for each broker; the states are packed for the first one."""
    return [encode(UpdateMetadataRequest(1001, 7, epoch, CONTROLLER, live, partitions)) for epoch in range(BROKERS)]


def one_round(live: tuple[BrokerEndpoint, ...]) -> tuple[float, float]:
    """Encode fresh states both ways, and return both times in seconds."""
    plain = tuple(PlainState(*values(number), (), (), 0, ()) for number in range(PARTITIONS))
    states = tuple(PartitionState(*values(number)) for number in range(PARTITIONS))
    gc.collect()
    start = time.perf_counter()
    each_time = encode_plain(plain, live)
    middle = time.perf_counter()
    once = encode_spliced(states, live)
    end = time.perf_counter()
    if each_time != once:
        sys.exit("the two ways did not encode the same bytes")
    return middle - start, end - middle


def main() -> None:
    """Measure in alternating rounds and print one row."""
    live = tuple(BrokerEndpoint(number, f"broker-{number}", 9092) for number in range(BROKERS))
    one_round(live)  # warms up
    each_time, once = zip(*(one_round(live) for _ in range(ROUNDS)), strict=True)
    encoded = PARTITIONS * BROKERS
    print("| encoding 100,000 partition states for 10 brokers | each time, states/s | packed once, states/s | ratio |")
    print("| --- | --- | --- | --- |")
    ratio = median(each_time) / median(once)
    print(f"| median of {ROUNDS} | {encoded / median(each_time):,.0f} | {encoded / median(once):,.0f} | {ratio:.1f}x |")


if __name__ == "__main__":
    main()
