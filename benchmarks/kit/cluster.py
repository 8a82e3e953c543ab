"""A cluster as the controller finds it in the metadata store: brokers, topics, and the states of their partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from attrs import frozen

from transport.metadata import BrokerRegistration, LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.chunks import plan_chunks
from transport.store.protocol import Create, MetadataStore, Op, ensure_paths
from transport.zookeeper_server import HOST

OPS_PER_MULTI: Final = 500
OPS_PER_PART: Final = 10_000
CONTROLLER_EPOCH: Final = 1
"""The controller epoch in the states."""


@frozen
class Shape:
    """The size of a cluster. Broker 0 leads `led_by_first` partitions, and the others share the rest evenly.

    The topics are numbered from `first_topic`, so that topics that are created one after another have different ids.
    """

    topics: int
    partitions_per_topic: int
    brokers: int = 10
    replication_factor: int = 3
    led_by_first: int | None = None
    prefix: str = "topic"
    first_topic: int = 0

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return self.topics * self.partitions_per_topic

    @property
    def replica_count(self) -> int:
        """The number of replicas of all partitions."""
        return self.partitions * self.replication_factor

    def names(self) -> list[str]:
        """List the topics."""
        return [f"{self.prefix}-{self.first_topic + number:05}" for number in range(self.topics)]

    def tps(self) -> list[TopicPartition]:
        """List the partitions."""
        return [TopicPartition(name, p) for name in self.names() for p in range(self.partitions_per_topic)]

    def replicas(self, number: int) -> tuple[int, ...]:
        """Return the replicas of a partition, numbered through all topics, leader first."""
        first = number % self.brokers
        if self.led_by_first is not None:
            # Every n-th is led by broker 0, the others by the others in turn.
            every = self.partitions // self.led_by_first
            first = 0 if number % every == 0 else 1 + number % (self.brokers - 1)
        step = 1 + number // self.brokers % (self.brokers // self.replication_factor)
        return tuple((first + step * place) % self.brokers for place in range(self.replication_factor))


def moved(shape: Shape, every: int) -> dict[TopicPartition, tuple[int, ...]]:
    """Return new replicas for one of so many partitions: another broker takes the place of the last one."""
    return {tp: moved_to(shape, shape.replicas(n)) for n, tp in enumerate(shape.tps()) if n % every == 1}


def moved_to(shape: Shape, replicas: tuple[int, ...]) -> tuple[int, ...]:
    """Return the replicas of a partition after its move."""
    others = ((replicas[-1] + step) % shape.brokers for step in range(1, shape.brokers))
    return (*replicas[:-1], next(broker_id for broker_id in others if broker_id not in replicas))


def topic_id(number: int) -> str:
    """Return the id of a topic."""
    # The last character has two bits of the id only, so it cannot tell topics apart.
    return f"AAAAAAAAAAAAAAAA{number:05}A"


def topic_znodes(shape: Shape) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the data of each topic's znode."""
    size = shape.partitions_per_topic
    for number, name in enumerate(shape.names()):
        partitions = {p: ReplicaAssignment(shape.replicas(number * size + p)) for p in range(size)}
        yield (
            paths.topic(name),
            formats.encode_topic(formats.TopicZnode(partitions, topic_id(shape.first_topic + number))),
        )


def state_znodes(shape: Shape) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the data of each partition's state: all replicas are in the ISR, the first one leads."""
    for number, tp in enumerate(shape.tps()):
        replicas = shape.replicas(number)
        state = LeaderAndIsr(replicas[0], 0, replicas, 0, CONTROLLER_EPOCH)
        yield paths.partition_state(tp), formats.encode_partition_state(state)


def creation(shape: Shape) -> Iterator[Op]:
    """Yield the operations that create the topics and everything below them, parents first."""
    yield from (Create(path, data) for path, data in topic_znodes(shape))
    yield from (Create(paths.topic_partitions(name)) for name in shape.names())
    for path, data in state_znodes(shape):
        yield Create(path.removesuffix("/state"))
        yield Create(path, data)


async def create_topics(store: MetadataStore, shape: Shape) -> None:
    """Create the topics and everything below them."""
    rest = creation(shape)
    # Part by part, so that little memory is left over that a controller could use unnoticed.
    while part := list(islice(rest, OPS_PER_PART)):
        await commit_all(store, part)


async def commit_all(store: MetadataStore, ops: Sequence[Op]) -> None:
    """Write in multis."""
    for multi in multis(ops):
        await store.multi(multi)


def multis(ops: Sequence[Op], chunk: int = OPS_PER_MULTI) -> list[list[Op]]:
    """Cut operations into multis of `chunk`, or of fewer that are large."""
    return [[ops[index] for index in part] for part in plan_chunks([(op,) for op in ops], max_ops=chunk)]


async def register(store: MetadataStore, broker_id: int, port: int) -> None:
    """Register a broker."""
    registration = BrokerRegistration(broker_id, HOST, port, 0)
    await store.multi([Create(paths.broker(broker_id), formats.encode_broker(registration, 0), ephemeral=True)])


async def create_cluster(store: MetadataStore, shape: Shape, ports: Sequence[int]) -> None:
    """Create the layout, the brokers' registrations and the topics; `ports` are those of the brokers."""
    await ensure_paths(store, paths.PERSISTENT)
    await store.multi([Create(paths.CONTROLLER_EPOCH, formats.encode_controller_epoch(CONTROLLER_EPOCH))])
    for broker_id in range(shape.brokers):
        await register(store, broker_id, ports[broker_id])
    await create_topics(store, shape)
