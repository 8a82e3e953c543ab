"""Reference brokers on loopback sockets and a memory store, under a scripted controller."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import trio
import trio.testing
from msgspec.structs import replace
from trio.testing import wait_all_tasks_blocked

from broker.client import Consumer, Producer
from broker.config import BrokerConfig
from broker.kit import BrokerHandle
from broker.reference.log_dir import records_on_disk
from broker.reference.run import run_reference_broker
from transport.errors import ErrorCode
from transport.host import Host
from transport.messages import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    BrokerEndpoint,
    FetchPartition,
    FetchRequest,
    FetchResult,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionState,
    ProduceRequest,
    Request,
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
)
from transport.metadata import TopicPartition
from transport.network import Network, TcpNetwork
from transport.store import formats, paths
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import Create, MetadataStore, Set
from transport.wire import Handlers, open_connection, serve

R = TypeVar("R")

LOOPBACK: Final = "127.0.0.1"
CONTROLLER_ID: Final = 100


async def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    with trio.fail_after(seconds):
        while not condition():
            await trio.sleep(0.005)


def new_host(seed: int = 0) -> Host:
    return Host(now_ms=lambda: 1_700_000_000_000, rng=random.Random(seed))


def state_of(replicas: tuple[int, ...] = (1, 2, 3), **changes: Any) -> PartitionState:
    """Return the state of partition t-0 led by 1 with all replicas in the ISR, apart from `changes`."""
    state = PartitionState(
        topic="t",
        topic_id="id-of-t",
        partition=0,
        controller_epoch=1,
        leader=1,
        leader_epoch=0,
        isr=replicas,
        partition_epoch=0,
        replicas=replicas,
    )
    return replace(state, **changes)


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


class Cluster:
    """Brokers, and the scripted controller: it keeps partition states and answers AlterPartition from them."""

    def __init__(self, directory: Path, nursery: trio.Nursery, settings: Mapping[str, Any]) -> None:
        self.zookeeper = MemoryZooKeeper(lambda: 1_700_000_000_000)
        self.network: Network = TcpNetwork()
        self.epoch = 1
        self.endpoint = BrokerEndpoint(CONTROLLER_ID, LOOPBACK, 0)
        self.brokers: dict[int, BrokerHandle] = {}
        self.states: dict[TopicPartition, PartitionState] = {}
        self.altered: list[AlterPartitionItem] = []
        self.refuse: Callable[[AlterPartitionItem], ErrorCode] = lambda _: ErrorCode.NONE
        self._directory = directory
        self._nursery = nursery
        self._settings = settings
        self._lives: dict[int, trio.CancelScope] = {}

    async def start_controller(self) -> None:
        handlers: Handlers = {AlterPartitionRequest: self._alter_partition}
        port: int = await self._nursery.start(partial(serve, self.network, handlers, LOOPBACK, 0))
        self.endpoint = BrokerEndpoint(CONTROLLER_ID, LOOPBACK, port)

    async def start_broker(self, broker_id: int) -> BrokerHandle:
        handle: BrokerHandle = await self._nursery.start(self._run_broker, broker_id)
        self.brokers[broker_id] = handle
        return handle

    async def kill_broker(self, broker_id: int) -> None:
        del self.brokers[broker_id]
        self._lives.pop(broker_id).cancel()
        await trio.testing.wait_all_tasks_blocked(0.01)

    def log_dir(self, broker_id: int) -> Path:
        return self._directory / f"broker-{broker_id}"

    def values_on_disk(self, broker_id: int, tp: TopicPartition) -> list[bytes]:
        try:
            return [record.value for record in records_on_disk(self.log_dir(broker_id), tp)]
        except FileNotFoundError:
            return []

    # --- what the controller sends ------------------------------------------------------------------------------

    async def call(self, broker_id: int, request: Request[R]) -> R:
        port = self.brokers[broker_id].port
        async with open_connection(self.network, LOOPBACK, port, client_id="controller") as connection:
            return await connection.call(request)

    async def announce(self, *states: PartitionState, others: tuple[BrokerEndpoint, ...] = ()) -> None:
        """Update every live broker's metadata; `others` are live, too."""
        live = tuple(BrokerEndpoint(b, LOOPBACK, handle.port) for b, handle in sorted(self.brokers.items())) + others
        for broker_id, handle in sorted(self.brokers.items()):
            request = UpdateMetadataRequest(
                CONTROLLER_ID, self.epoch, handle.broker_epoch, self.endpoint, live, tuple(states)
            )
            await self.call(broker_id, request)

    async def lead_and_follow(self, state: PartitionState, *, is_new: bool = False) -> None:
        """Make a state the truth, and tell the live brokers among its replicas, the followers first."""
        self.states[state.tp] = state
        await self.announce()
        for broker_id in sorted(state.replicas, key=lambda replica: replica == state.leader):
            if broker_id in self.brokers:
                await self.order(broker_id, state, is_new=is_new)
        await self.announce(state)

    async def order(self, broker_id: int, state: PartitionState, *, is_new: bool = False) -> LeaderAndIsrResponse:
        epoch = self.brokers[broker_id].broker_epoch
        partition = LeaderAndIsrPartition(state, is_new)
        return await self.call(broker_id, LeaderAndIsrRequest(CONTROLLER_ID, self.epoch, epoch, (partition,)))

    async def stop(
        self, broker_id: int, state: PartitionState, *, delete: bool, leader_epoch: int | None = None
    ) -> StopReplicaResponse:
        epoch = state.leader_epoch if leader_epoch is None else leader_epoch
        partition = StopReplicaPartition(state.topic, state.topic_id, state.partition, epoch, delete)
        broker_epoch = self.brokers[broker_id].broker_epoch
        return await self.call(broker_id, StopReplicaRequest(CONTROLLER_ID, self.epoch, broker_epoch, (partition,)))

    # --- clients ------------------------------------------------------------------------------------------------

    def producer(self) -> Producer:
        return Producer(self.network, self._bootstrap(), host=new_host(1))

    def consumer(self) -> Consumer:
        return Consumer(self.network, self._bootstrap(), host=new_host(2))

    async def produce(self, *values: bytes) -> int:
        async with self.producer() as producer:
            return await producer.send("t", 0, values)

    async def produce_once(self, broker_id: int, value: bytes, *, acks: int = -1, wait_ms: int = 20_000) -> int:
        return (await self.call(broker_id, ProduceRequest("t", 0, acks, wait_ms, (value,)))).base_offset

    async def fetch_as(self, replica_id: int, asked: FetchPartition, *, broker_id: int = 1) -> FetchResult:
        [result] = (await self.call(broker_id, FetchRequest(replica_id, 0, (asked,)))).partitions
        return result

    def _bootstrap(self) -> list[tuple[str, int]]:
        return [(LOOPBACK, handle.port) for _, handle in sorted(self.brokers.items())]

    # --- within -------------------------------------------------------------------------------------------------

    async def _run_broker(
        self, broker_id: int, *, task_status: trio.TaskStatus[BrokerHandle] = trio.TASK_STATUS_IGNORED
    ) -> None:
        config = BrokerConfig(broker_id, self.log_dir(broker_id), **self._settings)
        with trio.CancelScope() as self._lives[broker_id]:
            async with self.zookeeper.session() as store:
                await run_reference_broker(
                    config, store=store, network=self.network, host=new_host(broker_id), task_status=task_status
                )

    async def _alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        return AlterPartitionResponse(tuple(self._alter(item) for item in request.partitions))

    def _alter(self, item: AlterPartitionItem) -> AlterPartitionResult:
        self.altered.append(item)
        tp = item.tp
        state = self.states[tp]
        error = self.refuse(item)
        if item.leader_epoch < state.leader_epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        elif item.partition_epoch < state.partition_epoch and item.new_isr != state.isr:
            error = ErrorCode.INVALID_UPDATE_VERSION
        if error is not ErrorCode.NONE:
            return AlterPartitionResult(*tp, error)
        if item.new_isr != state.isr:
            state = replace(state, isr=item.new_isr, partition_epoch=state.partition_epoch + 1)
            self.states[tp] = state
        return AlterPartitionResult(
            *tp, error, state.leader, state.leader_epoch, state.isr, state.partition_epoch, state.leader_recovery_state
        )


@asynccontextmanager
async def running_cluster(directory: Path, *broker_ids: int, **settings: Any) -> AsyncIterator[Cluster]:
    """Run brokers with these settings, and the controller, for the time of the block."""
    async with trio.open_nursery() as nursery:
        cluster = Cluster(directory, nursery, settings)
        await cluster.start_controller()
        for broker_id in broker_ids:
            await cluster.start_broker(broker_id)
        await cluster.announce()
        yield cluster
        nursery.cancel_scope.cancel()


async def write_settings(
    store: MetadataStore, path: str, data: bytes | dict[str, str], *, announce: bool = True
) -> None:
    """Write settings and announce it, as the controller and Kafka's tools do."""
    [found] = await store.read([path])
    encoded = data if isinstance(data, bytes) else formats.encode_config(data)
    op = Create(path, encoded) if found is None else Set(path, encoded, found.stat.version)
    told = formats.encode_config_change(path.removeprefix("/config/"))
    change = Create(f"{paths.CONFIG_CHANGES}/config_change_", told, sequence=True)
    await store.multi([op, change] if announce else [op])
    await wait_all_tasks_blocked()


def break_down(path: Path) -> None:
    """Put a file in the place of a directory, which stops root as well."""
    path.rename(path.with_suffix(".broken"))
    path.write_text("no directory")
