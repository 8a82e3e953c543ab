"""Moves as ZooKeeper and disks show them: rejected, begun, waiting, overridden, cancelled."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from attrs import define

from broker.client import Producer
from broker.reference.log_dir import records_on_disk
from klamm.cli.demo.clusters import BROKERS, log_dir
from klamm.cli.demo.scenario import ORDERS
from tests.cluster.running import FIRST, RealCluster
from tests.cluster.waiting import until
from transport.errors import ErrorCode
from transport.host import Host
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    PartitionError,
)
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import Create

ORIGIN, TARGET = (1, 2, 3), (4, 5, 6)
SILENT = 5
"""The broker of the target that does not come along."""


@define
class Moves(RealCluster):
    """Six brokers with one partition."""

    async def until_replicas(self, *replicas: int) -> None:
        async def are_there() -> bool:
            return await self.assignment() == ReplicaAssignment(replicas)

        await until(are_there)

    async def until_in_sync(self, *brokers: int) -> None:
        async def are_in_sync() -> bool:
            return sorted((await self.state()).isr) == sorted(brokers)

        await until(are_in_sync)

    async def require_in_sync(self, count: int) -> None:
        """Let the topic take records only while so many are in the ISR."""
        topic = ConfigResource(ConfigResourceType.TOPIC, ORDERS.topic)
        setting = AlterableConfig("min.insync.replicas", ConfigOperation.SET, str(count))
        [altered] = await self.admin.incremental_alter_configs([AlterConfigsResource(topic, (setting,))])
        assert altered.error is ErrorCode.NONE

    async def begin_without_the_silent_one(self, replicas: tuple[int, ...]) -> None:
        """Begin a move to a broker that is alive as far as anybody knows, and does not hear of it."""
        self.processes[SILENT].send_signal(signal.SIGSTOP)
        assert (await self.reassign(replicas)).error is ErrorCode.NONE
        await self.kill(SILENT)

    async def bring_back_the_silent_one(self) -> None:
        """Start it again, and let it delete what moves have left there."""
        self.start_brokers([SILENT])

        async def has_deleted() -> bool:
            return await self.store.children([paths.STRAYS]) == [[]]

        await until(has_deleted)

    def logs(self) -> list[int]:
        return [id_ for id_ in BROKERS if (log_dir(self.data_dir, id_) / str(ORDERS)).exists()]


@asynccontextmanager
async def moves(address: str, data_dir: Path) -> AsyncIterator[Moves]:
    async with Moves.running(address, data_dir, brokers=BROKERS) as cluster:
        await cluster.create_topic(ORDERS.topic, ORIGIN)
        await cluster.until_in_sync(*ORIGIN)
        yield cluster


async def produce(cluster: Moves, values: Sequence[bytes]) -> None:
    brokers = [(broker.host, broker.port) for broker in (await cluster.admin.read_metadata()).brokers]
    async with Producer(TcpNetwork(), brokers, host=Host()) as producer:
        await producer.send(*ORDERS, values)


@pytest.mark.requirement("A3")
async def test_what_cannot_be_done_is_refused_with_its_reason_and_leaves_no_request(
    zookeeper: str, tmp_path: Path
) -> None:
    async with moves(f"{zookeeper}/refused-moves", tmp_path) as cluster:
        before = await cluster.store.read([paths.topic(ORDERS.topic), paths.partition_state(ORDERS)])
        for replicas, why in [
            ((), "the list of replicas is empty"),
            ((1, 1), "the list of replicas [1, 1] names a broker twice"),
            ((1, -2), "the list of replicas [1, -2] has a negative broker id"),
            ((1, 7), "replicas cannot be added on brokers [7], which are not alive"),
        ]:
            refusal = PartitionError(*ORDERS, ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
            assert await cluster.reassign(replicas) == refusal
        nowhere = TopicPartition("nowhere", 0)
        why = "there is no partition nowhere-0"
        assert await cluster.reassign((4,), nowhere) == PartitionError(
            *nowhere, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why
        )
        assert (await cluster.reassign(ORIGIN)).error is ErrorCode.NONE  # it is there

        requests = {ORDERS: (1, 7), nowhere: (4,)}
        await cluster.store.multi([Create(paths.REASSIGN_PARTITIONS, formats.encode_reassign_partitions(requests))])
        await cluster.until_gone(paths.REASSIGN_PARTITIONS)
        told = cluster.log(FIRST)
        assert "replicas cannot be added on brokers [7], which are not alive" in told
        assert why in told
        assert await cluster.store.read([paths.topic(ORDERS.topic), paths.partition_state(ORDERS)]) == before


@pytest.mark.soak
@pytest.mark.requirement("A4", "A9", "A11")
async def test_a_move_that_waits_is_overridden_and_the_next_one_cancelled(zookeeper: str, tmp_path: Path) -> None:
    async with moves(f"{zookeeper}/overridden-moves", tmp_path) as cluster:
        values = [f"record {number}".encode() for number in range(100)]
        await produce(cluster, values)
        before = await cluster.state()

        await cluster.begin_without_the_silent_one(TARGET)
        assert await cluster.assignment() == ReplicaAssignment((*TARGET, *ORIGIN), TARGET, ORIGIN)
        await cluster.until_in_sync(1, 2, 3, 4, 6)
        waiting = await cluster.state()
        assert (waiting.leader, waiting.leader_epoch) == (before.leader, before.leader_epoch + 1)
        assert await cluster.assignment() == ReplicaAssignment((*TARGET, *ORIGIN), TARGET, ORIGIN)
        assert set(cluster.logs()) - {SILENT} == {1, 2, 3, 4, 6}

        assert (await cluster.reassign((4, 6, 2))).error is ErrorCode.NONE
        await cluster.until_replicas(4, 6, 2)
        await cluster.until_in_sync(2, 4, 6)
        assert (await cluster.state()).leader in {2, 4, 6}
        await cluster.bring_back_the_silent_one()
        assert cluster.logs() == [2, 4, 6]

        await cluster.begin_without_the_silent_one((SILENT, 1, 3))
        await cluster.until_in_sync(1, 2, 3, 4, 6)
        assert (await cluster.reassign(None)).error is ErrorCode.NONE
        await cluster.until_replicas(4, 6, 2)
        await cluster.until_in_sync(2, 4, 6)
        assert (await cluster.reassign(None)).error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        await cluster.bring_back_the_silent_one()
        assert cluster.logs() == [2, 4, 6]

        await cluster.stop_brokers()
        logs = [records_on_disk(log_dir(tmp_path, id_), ORDERS) for id_ in (2, 4, 6)]
        assert [[record.value for record in log] for log in logs] == [values] * 3


@pytest.mark.requirement("A11")
async def test_a_cancel_is_refused_without_a_leader_and_a_move_back_below_min_insync_replicas(
    zookeeper: str, tmp_path: Path
) -> None:
    async with moves(f"{zookeeper}/unsafe-cancel", tmp_path) as cluster:
        await cluster.require_in_sync(2)
        assert (await cluster.reassign((2, 1))).error is ErrorCode.NONE
        await cluster.until_replicas(2, 1)
        await cluster.begin_without_the_silent_one((4, SILENT))
        await cluster.until_in_sync(1, 2, 4)
        for id_ in (1, 2):
            await cluster.kill(id_)
        await cluster.until_in_sync(4)
        before = await cluster.assignment(), await cluster.state()
        why = "no live member of the ISR would be left to lead"
        assert await cluster.reassign(None) == PartitionError(*ORDERS, ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
        assert (await cluster.assignment(), await cluster.state()) == before

        cluster.start_brokers([1])
        await cluster.until_in_sync(1, 4)
        assert (await cluster.reassign(None)).error is ErrorCode.NONE
        assert await cluster.assignment() == ReplicaAssignment((2, 1, 4), (), (4,))
        cluster.start_brokers([2])
        await cluster.until_replicas(2, 1)
        await cluster.until_in_sync(1, 2)
