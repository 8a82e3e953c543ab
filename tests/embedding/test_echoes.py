"""A controller is not told of what it writes to topics' znodes itself, and is told of what others write there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest
import trio
from attrs import define, evolve

import klamm
from controller.node.service import ControllerService
from tests.kit.service import until
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    NewPartitions,
    NewTopic,
    ReassignablePartition,
)
from transport.metadata import BrokerRegistration, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import Create, MetadataStore, Set, ensure_paths
from transport.store.zookeeper import open_zookeeper

OpenStore = Callable[[], AbstractAsyncContextManager[MetadataStore]]
TOPICS = tuple(f"topic-{number:03}" for number in range(150))
REPLICAS = ((1, 2), (2, 1))


@define
class Busy:
    """A controller with many topics, and a session of somebody else."""

    service: ControllerService
    tool: MetadataStore

    def count(self, event: str) -> int:
        """Return how many events of a name were processed."""
        statistics = self.service.statistics()
        return statistics[event].count if event in statistics else 0

    async def rest(self) -> None:
        """Wait until nothing is left to do."""
        await until(lambda: self.service.is_idle)
        # What the store has told until now arrives before the answer to a request that is sent now.
        await self.service.store.read(["/"])
        await until(lambda: self.service.is_idle)

    async def move_all(self) -> None:
        """Have each partition leave a broker that it need not wait for."""
        moves = [ReassignablePartition(name, number, REPLICAS[number][:1]) for name in TOPICS for number in range(2)]
        await self.service.answer(AlterPartitionReassignmentsRequest(tuple(moves)))

    async def grow_all(self) -> None:
        """Add a partition to each topic."""
        await self.service.answer(CreatePartitionsRequest(tuple(NewPartitions(name, 3, ((2,),)) for name in TOPICS)))

    async def assignments(self) -> list[list[tuple[int, ...]]]:
        """Return the replicas of all topics, in the store."""
        znodes = await self.tool.read([paths.topic(name) for name in TOPICS])
        topics = [formats.decode_topic("t", znode.data) for znode in znodes if znode is not None]
        return [[assignment.replicas for assignment in topic.partitions.values()] for topic in topics]


@pytest.fixture(params=["memory", "zookeeper"])
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    if request.param == "memory":
        return MemoryZooKeeper(lambda: 0).session
    address = request.getfixturevalue("zookeeper")
    return partial(open_zookeeper, f"{address}/{request.node.name.partition('[')[0]}")


@pytest.fixture
async def busy(open_store: OpenStore, nursery: trio.Nursery) -> AsyncIterator[Busy]:
    async with open_store() as tool:
        await ensure_paths(tool, paths.PERSISTENT)
        for broker_id in (1, 2):
            data = formats.encode_broker(BrokerRegistration(broker_id, "127.0.0.1", 1, -1), 0)
            await tool.multi([Create(paths.broker(broker_id), data, ephemeral=True)])
        config = klamm.ControllerConfig(1001, auto_leader_rebalance_enable=False)
        service = await nursery.start(partial(klamm.run, config, open_store=open_store))
        await until(lambda: service.is_active)
        busy = Busy(service, tool)
        await busy.rest()
        await service.answer(CreateTopicsRequest(tuple(NewTopic(name, 2, 2, REPLICAS) for name in TOPICS)))
        await busy.rest()
        yield busy


async def test_what_is_written_to_many_topics_causes_no_events(busy: Busy) -> None:
    await busy.move_all()
    await busy.grow_all()
    await busy.rest()
    assert await busy.assignments() == [[(1,), (2,), (2,)]] * len(TOPICS)
    assert busy.count("PartitionModifications") == 0


async def test_what_others_write_afterwards_is_looked_at_together(busy: Busy) -> None:
    await busy.grow_all()
    found = await busy.tool.read([paths.topic(name) for name in TOPICS])
    writes = []
    for name, znode in zip(TOPICS, found, strict=True):
        assert znode is not None
        topic = formats.decode_topic(name, znode.data)
        grown = evolve(topic, partitions={**topic.partitions, 3: ReplicaAssignment((2, 1))})
        writes.append(Set(paths.topic(name), formats.encode_topic(grown), znode.stat.version))
    await busy.tool.multi(writes)
    states = [paths.partition_state(TopicPartition(name, 3)) for name in TOPICS]
    with trio.fail_after(10):
        while None in await busy.tool.read(states):
            await trio.sleep(0.01)
    await busy.rest()
    assert 1 <= busy.count("PartitionModifications") <= 20


async def test_the_creation_of_many_topics_causes_few_events(busy: Busy) -> None:
    assert busy.count("PartitionModifications") == 0
    assert 1 <= busy.count("TopicChange") <= 3
