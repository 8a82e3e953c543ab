"""A controller's rounds on the memory store, without a network: what is published is kept in a list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

import pytest
from attrs import define, field

from controller.context import ControllerContext
from controller.facts import BrokerGone, BrokerRegistered
from controller.handlers.failover import failover
from controller.observer import CommittedRound, PublishedRound
from controller.round_runner import RoundRunner
from controller.rounds import Publication, Rounds
from transport.messages import BrokerEndpoint
from transport.metadata import BrokerRegistration, LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.protocol import Create, Delete, Set, ensure_paths

T = TypeVar("T")

ENDPOINT = BrokerEndpoint(1001, "127.0.0.1", 1)


@define
class Recorder:
    """Takes the part of channels and observer, and remembers."""

    published: list[Publication] = field(factory=list)
    commits: list[CommittedRound] = field(factory=list)
    rounds: list[str] = field(factory=list)

    def follow(self, fact: BrokerRegistered | BrokerGone) -> None:
        """Brokers are known from the context."""

    def publish(self, publications: Sequence[Publication]) -> None:
        """Remember what was published."""
        self.published += publications

    def committed(self, commit: CommittedRound) -> None:
        """Remember a commit."""
        self.commits.append(commit)
        self.rounds.append(commit.round)



@define
class Bench:
    """One controllership and the store below it."""

    store: MemoryStore
    context: ControllerContext
    runner: RoundRunner
    seen: Recorder

    async def run(self, rounds: Rounds[T]) -> T:
        """Run a handler."""
        return await self.runner.run("test", rounds)

    async def register(self, *broker_ids: int) -> None:
        """Register brokers."""
        for broker_id in broker_ids:
            data = formats.encode_broker(BrokerRegistration(broker_id, "127.0.0.1", 9000 + broker_id, -1), 0)
            await self.store.multi([Create(paths.broker(broker_id), data, ephemeral=True)])

    async def unregister(self, *broker_ids: int) -> None:
        """Let brokers die."""
        for broker_id in broker_ids:
            await self.store.multi([Delete(paths.broker(broker_id))])

    async def write_topic(self, name: str, *replicas: Sequence[int]) -> None:
        """Write a topic's znode."""
        partitions = {number: ReplicaAssignment(tuple(item)) for number, item in enumerate(replicas)}
        data = formats.encode_topic(formats.TopicZnode(partitions, "id-of-" + name))
        await self.store.multi([Create(paths.topic(name), data)])

    async def read_state(self, tp: TopicPartition) -> LeaderAndIsr:
        """Read a partition's state from the store."""
        [znode] = await self.store.read([paths.partition_state(tp)])
        assert znode is not None
        return formats.decode_partition_state(tp, znode.data, znode.stat.version)

    async def read_assignment(self, tp: TopicPartition) -> ReplicaAssignment:
        """Read a partition's assignment from the store."""
        [znode] = await self.store.read([paths.topic(tp.topic)])
        assert znode is not None
        return formats.decode_topic(tp.topic, znode.data).partitions[tp.partition]

    async def write_state(self, tp: TopicPartition, state: LeaderAndIsr) -> None:
        """Write a partition's state behind the controller's back."""
        await self.store.multi([Set(paths.partition_state(tp), formats.encode_partition_state(state), -1)])

    async def fail_over(self) -> None:
        """Replace the controllership by the next one."""
        epoch = self.context.epoch + 1
        await self.store.multi([Set(paths.CONTROLLER_EPOCH, formats.encode_controller_epoch(epoch), -1)])
        self.context = ControllerContext(ENDPOINT, epoch, epoch)
        self.runner.context = self.context
        await self.run(failover(self.context, iter(())))


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """Controllership 1 of a cluster without brokers or topics."""
    async with MemoryZooKeeper(lambda: 0).session() as store:
        await ensure_paths(store, paths.PERSISTENT)
        await store.multi([Create(paths.CONTROLLER_EPOCH, b"0")])
        await store.multi([Set(paths.CONTROLLER_EPOCH, b"1", 0)])
        context = ControllerContext(ENDPOINT, 1, 1)
        seen = Recorder()
        yield Bench(store, context, RoundRunner(store, context, seen, _Observe(seen)), seen)


@define
class _Observe:
    seen: Recorder

    def committed(self, commit: CommittedRound) -> None:
        self.seen.committed(commit)

    def published(self, publication: PublishedRound) -> None:
        self.seen.rounds.append(f"({publication.round})")
