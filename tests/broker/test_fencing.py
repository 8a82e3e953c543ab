"""The kit's fence over a real connection, and the orders that pass it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio
import trio.testing
from attrs import define, field
from msgspec.structs import replace

from broker.config import BrokerConfig
from broker.fencing import ControllerFence
from broker.kit import BrokerHandle, run_broker
from broker.metadata_cache import MetadataCache
from broker.registration import Registration
from tests.broker.cluster import LOOPBACK, new_host, state_of
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    NOT_FAILURES,
    BrokerEndpoint,
    DescribeLogDirsRequest,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    MetadataRequest,
    PartitionState,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from transport.network import TcpNetwork
from transport.store import paths
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import Create, Delete, ensure_paths
from transport.wire import Connection, ConnectionBroken, Handlers, UnsupportedApi, open_connection

R = TypeVar("R")

CONTROLLER = BrokerEndpoint(100, LOOPBACK, 1234)
STATE = state_of(leader_epoch=5, partition_epoch=7)


@define
class RecordingService:
    """Notes what it is called for, and fails when told to."""

    calls: list[str] = field(factory=list)
    failure: ErrorCode = ErrorCode.NONE
    crashes_on: int | None = None
    under_way: int = 0

    async def become_leader(self, state: PartitionState, *, is_new: bool) -> None:
        if state.partition == self.crashes_on:
            raise ZeroDivisionError("no room")
        await self._note(f"lead {state.leader_epoch}.{state.partition_epoch}{' new' if is_new else ''}")

    async def become_follower(self, state: PartitionState, *, is_new: bool) -> None:
        new = " new" if is_new else ""
        await self._note(f"follow {state.leader} {state.leader_epoch}.{state.partition_epoch}{new}")

    async def stop_replica(self, partition: StopReplicaPartition) -> None:
        await self._note("delete" if partition.delete else "stop")

    async def update_metadata(self, metadata: MetadataCache) -> None:
        await self._note(f"metadata {list(metadata.live_brokers)}")

    def handlers(self) -> Handlers:
        return {}

    async def _note(self, call: str) -> None:
        self.under_way += 1
        assert self.under_way == 1
        await trio.testing.wait_all_tasks_blocked()
        self.under_way -= 1
        self.calls.append(call)
        if self.failure is not ErrorCode.NONE:
            raise ApiError(self.failure, "as told")


@define
class Fencing:
    service: RecordingService
    broker: BrokerHandle
    connection: Connection

    async def order(self, state: PartitionState, *, is_new: bool = False, **fence: Any) -> ErrorCode:
        partitions = (LeaderAndIsrPartition(state, is_new),)
        request = LeaderAndIsrRequest(100, 3, self.broker.broker_epoch, partitions)
        [outcome] = (await self.connection.call(replace(request, **fence))).partitions
        return outcome.error

    async def stop(self, partition: StopReplicaPartition, **fence: Any) -> ErrorCode:
        request = StopReplicaRequest(100, 3, self.broker.broker_epoch, (partition,))
        [outcome] = (await self.connection.call(replace(request, **fence))).partitions
        return outcome.error

    async def inform(self, *states: PartitionState, **changes: Any) -> None:
        request = UpdateMetadataRequest(100, 3, self.broker.broker_epoch, CONTROLLER, None, states)
        await self.connection.call(replace(request, **changes))


def stopping(**changes: Any) -> StopReplicaPartition:
    return replace(StopReplicaPartition("t", "id-of-t", 0, 5, delete=False), **changes)


@asynccontextmanager
async def running_broker(directory: Path) -> AsyncIterator[Fencing]:
    service = RecordingService()
    network, host = TcpNetwork(), new_host()
    zookeeper = MemoryZooKeeper(lambda: 0)
    async with zookeeper.session() as store, trio.open_nursery() as nursery:
        run = partial(run_broker, store=store, network=network, host=host)
        broker: BrokerHandle = await nursery.start(run, BrokerConfig(1, directory), lambda _: service)
        async with open_connection(network, LOOPBACK, broker.port, client_id="controller") as connection:
            yield Fencing(service, broker, connection)
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("D1")
async def test_a_deposed_controller_is_refused_whatever_it_asks(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as it:
        assert await it.order(STATE, controller_epoch=4) is ErrorCode.NONE
        for refused in (it.order(STATE), it.stop(stopping()), it.inform(STATE)):
            with pytest.raises(ApiError) as refusal:
                await refused
            assert refusal.value.code is ErrorCode.STALE_CONTROLLER_EPOCH
        assert it.service.calls == ["lead 5.7"]


@pytest.mark.requirement("D10")
async def test_a_copy_that_comes_after_later_requests_is_refused_and_a_repetition_is_not(
    tmp_path: Path,
) -> None:
    brokers = tuple(BrokerEndpoint(b, LOOPBACK, 9000 + b, rack=None) for b in (1, 2))
    async with running_broker(tmp_path) as it:
        await it.inform(live_brokers=brokers[:1], number=7)
        await it.inform(live_brokers=brokers, number=8)
        for late in (
            it.order(STATE, is_new=True, number=7),
            it.stop(stopping(), number=7),
            it.inform(live_brokers=brokers[:1], number=7),
        ):
            with pytest.raises(ApiError) as refusal:
                await late
            assert refusal.value.code is ErrorCode.INVALID_REQUEST
        assert (await it.connection.call(MetadataRequest())).brokers == brokers
        await it.inform(live_brokers=brokers, number=8)
        await it.inform(live_brokers=brokers[:1], number=0, controller_epoch=4)
        assert (await it.connection.call(MetadataRequest())).brokers == brokers[:1]
        assert it.service.calls == ["metadata [1]", *["metadata [1, 2]"] * 2, "metadata [1]"]


@pytest.mark.requirement("D5")
async def test_a_request_for_an_earlier_life_of_the_broker_is_refused(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as it:
        earlier = it.broker.broker_epoch - 1
        for refused in (
            it.order(STATE, broker_epoch=earlier, controller_epoch=9),
            it.stop(stopping(), broker_epoch=earlier),
            it.inform(broker_epoch=earlier),
        ):
            with pytest.raises(ApiError) as refusal:
                await refused
            assert refusal.value.code is ErrorCode.STALE_BROKER_EPOCH
        assert await it.order(STATE) is ErrorCode.NONE, "the controller epoch of a refused request is not believed"


async def test_a_request_for_another_broker_that_had_this_address_before_is_refused(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as it:
        later = it.broker.broker_epoch + 1
        for refused in (
            it.order(STATE, broker_epoch=later, controller_epoch=9),
            it.stop(stopping(), broker_epoch=later),
            it.inform(broker_epoch=later),
        ):
            with pytest.raises(ApiError, match="for another broker") as refusal:
                await refused
            assert refusal.value.code is ErrorCode.INVALID_REQUEST
        assert await it.order(STATE) is ErrorCode.NONE, "the controller epoch of a refused request is not believed"


def test_a_broker_epoch_that_we_do_not_know_to_be_ours_yet_passes() -> None:
    fence = ControllerFence()
    fence.admit(UpdateMetadataRequest(100, 3, 8, CONTROLLER, None, ()), 7, is_registering=True)
    assert fence.controller_epoch == 3


async def test_a_broker_that_has_to_register_again_does_not_know_its_epoch(tmp_path: Path) -> None:
    zookeeper = MemoryZooKeeper(lambda: 0)
    config = BrokerConfig(1, tmp_path)
    async with zookeeper.session() as store, zookeeper.session() as rival:
        registration = Registration(store, new_host(), config, "storage")
        await ensure_paths(store, paths.PERSISTENT)
        await registration.register(9092)
        known = [registration.is_under_way]
        zookeeper.expire(store.session_id)
        await rival.multi([Create(paths.broker(1), ephemeral=True)])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(registration.keep)
            await trio.testing.wait_all_tasks_blocked()
            known.append(registration.is_under_way)
            nursery.cancel_scope.cancel()
        assert known == [False, True]


@pytest.mark.parametrize(
    ("second", "error", "call"),
    [
        (STATE, ErrorCode.NONE, None),
        (replace(STATE, leader_epoch=4, partition_epoch=9), ErrorCode.FENCED_LEADER_EPOCH, None),
        (replace(STATE, partition_epoch=6, isr=(1,)), ErrorCode.NONE, None),
        (replace(STATE, partition_epoch=8, isr=(1,)), ErrorCode.NONE, "lead 5.8"),
        (replace(STATE, replicas=(1, 2)), ErrorCode.NONE, "lead 5.7"),
        (replace(STATE, leader_epoch=6), ErrorCode.NONE, "lead 6.7"),
        (replace(STATE, leader_epoch=6, leader=2), ErrorCode.NONE, "follow 2 6.7"),
        (replace(STATE, leader_epoch=6, leader=-1), ErrorCode.NONE, "follow -1 6.7"),
        (replace(STATE, leader_epoch=6, topic_id="other"), ErrorCode.UNKNOWN_TOPIC_ID, None),
    ],
)
async def test_what_a_partition_state_means_after_another(
    tmp_path: Path, second: PartitionState, error: ErrorCode, call: str | None
) -> None:
    async with running_broker(tmp_path) as it:
        await it.order(STATE, is_new=True)
        assert await it.order(second) is error
        assert it.service.calls == ["lead 5.7 new", *([call] if call is not None else [])]


@pytest.mark.parametrize(
    ("partition", "error", "call"),
    [
        (stopping(), ErrorCode.NONE, "stop"),
        (stopping(leader_epoch=6, delete=True), ErrorCode.NONE, "delete"),
        (stopping(leader_epoch=-2, delete=True), ErrorCode.NONE, "delete"),
        (stopping(leader_epoch=4, delete=True), ErrorCode.FENCED_LEADER_EPOCH, None),
        (stopping(topic_id="other", delete=True), ErrorCode.NONE, None),
        (stopping(partition=1, delete=True), ErrorCode.NONE, "delete"),
    ],
)
async def test_which_replicas_may_be_stopped(
    tmp_path: Path, partition: StopReplicaPartition, error: ErrorCode, call: str | None
) -> None:
    async with running_broker(tmp_path) as it:
        await it.order(STATE)
        assert await it.stop(partition) is error
        assert it.service.calls == ["lead 5.7", *([call] if call is not None else [])]


async def test_a_stopped_replica_begins_again_but_not_under_an_earlier_epoch(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as it:
        await it.order(STATE)
        await it.stop(stopping(leader_epoch=6))
        assert await it.order(STATE) is ErrorCode.FENCED_LEADER_EPOCH
        assert await it.order(replace(STATE, leader_epoch=6)) is ErrorCode.NONE
        assert it.service.calls == ["lead 5.7", "stop", "lead 6.7"]


async def test_a_deleted_replica_may_be_of_another_topic_next(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as it:
        await it.order(STATE)
        await it.stop(stopping(leader_epoch=-2, delete=True))
        recreated = replace(STATE, topic_id="other", leader_epoch=0)
        assert await it.order(recreated, is_new=True) is ErrorCode.NONE
        assert it.service.calls[-1] == "lead 0.7 new"


@pytest.mark.requirement("A9")
async def test_what_the_service_refuses_is_that_partitions_error_and_can_be_repeated(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as it:
        it.service.failure = ErrorCode.KAFKA_STORAGE_ERROR
        assert await it.order(STATE) is ErrorCode.KAFKA_STORAGE_ERROR
        assert await it.stop(stopping(delete=True)) is ErrorCode.KAFKA_STORAGE_ERROR
        it.service.failure = ErrorCode.NONE
        assert await it.order(STATE) is ErrorCode.NONE
        assert it.service.calls == ["lead 5.7", "delete", "lead 5.7"]


async def test_a_service_that_fails_on_one_partition_still_gets_the_others(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as it:
        it.service.crashes_on = 0
        partitions = tuple(LeaderAndIsrPartition(replace(STATE, partition=p), is_new=False) for p in (0, 1))
        response = await it.connection.call(LeaderAndIsrRequest(100, 3, it.broker.broker_epoch, partitions))
        assert [item.error for item in response.partitions] == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]
        assert [item.message for item in response.partitions] == ["ZeroDivisionError: no room", ""]
        assert it.service.calls == ["lead 5.7"]


@pytest.mark.parametrize("error", sorted(NOT_FAILURES - {ErrorCode.NONE}))
async def test_an_error_of_the_service_is_never_taken_for_that_of_a_stale_order(
    tmp_path: Path, error: ErrorCode
) -> None:
    async with running_broker(tmp_path) as it:
        it.service.failure = error
        assert await it.order(STATE) is ErrorCode.UNKNOWN_SERVER_ERROR
        assert await it.stop(stopping(delete=False)) is ErrorCode.UNKNOWN_SERVER_ERROR


async def test_nothing_is_obeyed_before_the_broker_is_registered(tmp_path: Path) -> None:
    # What was meant for an earlier life of this broker may arrive at its address (KAFKA-7235).
    service, zookeeper, network = RecordingService(), MemoryZooKeeper(lambda: 0), TcpNetwork()
    port = await free_port(network)
    config = BrokerConfig(1, tmp_path, port=port, zookeeper_session_timeout_ms=60_000)
    async with zookeeper.session() as predecessor, zookeeper.session() as store, trio.open_nursery() as nursery:
        await ensure_paths(store, paths.PERSISTENT)
        created = await predecessor.multi([Create(paths.broker(1), ephemeral=True)])
        nursery.start_soon(
            partial(run_broker, config, lambda _: service, store=store, network=network, host=new_host())
        )
        connection = await nursery.start(connect_when_listening, network, port)
        old = StopReplicaRequest(100, 3, created.zxid, (stopping(delete=True),))
        with trio.move_on_after(0.2) as waiting:
            await connection.call(old)
        assert waiting.cancelled_caught
        assert service.calls == []
        await predecessor.multi([Delete(paths.broker(1))])
        connection = await nursery.start(connect_when_listening, network, port)
        with pytest.raises(ApiError) as caught:
            await connection.call(old)
        assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH
        assert service.calls == []
        nursery.cancel_scope.cancel()


async def free_port(network: TcpNetwork) -> int:
    async def hang_up(stream: trio.abc.Stream) -> None:
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        port: int = await nursery.start(network.serve, hang_up, LOOPBACK, 0)
        nursery.cancel_scope.cancel()
    return port


async def connect_when_listening(network: TcpNetwork, port: int, *, task_status: trio.TaskStatus[Connection]) -> None:
    with trio.fail_after(10):
        while True:
            with suppress(ConnectionBroken):
                async with open_connection(network, LOOPBACK, port, client_id="controller") as connection:
                    task_status.started(connection)
                    await trio.sleep_forever()
            await trio.sleep(0.01)


async def test_the_controllers_requests_are_taken_one_at_a_time(tmp_path: Path) -> None:
    async with (
        running_broker(tmp_path) as it,
        open_connection(TcpNetwork(), LOOPBACK, it.broker.port, client_id="controller") as second,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(it.order, STATE)
            nursery.start_soon(Fencing(it.service, it.broker, second).order, replace(STATE, partition=1))
        assert it.service.calls == ["lead 5.7", "lead 5.7"]


async def test_metadata_is_the_latest_that_the_controller_told(tmp_path: Path) -> None:
    brokers = tuple(BrokerEndpoint(b, LOOPBACK, 9000 + b, rack=None) for b in (1, 2))
    other = state_of(topic="u", topic_id="id-of-u", partition=1)
    async with running_broker(tmp_path) as it:
        await it.inform(STATE, other, live_brokers=brokers)
        await it.inform(replace(STATE, leader_epoch=4, leader=2))
        everything = await it.connection.call(MetadataRequest())
        assert (everything.controller, everything.controller_epoch) == (CONTROLLER, 3)
        assert everything.brokers == brokers
        assert everything.partitions == (STATE, other)
        assert (await it.connection.call(MetadataRequest(("u", "v")))).partitions == (other,)

        await it.inform(replace(STATE, topic_id="recreated", leader_epoch=0), replace(other, leader=-2))
        [recreated] = (await it.connection.call(MetadataRequest())).partitions
        assert recreated.topic_id == "recreated"
        assert it.service.calls == ["metadata [1, 2]"] * 3


async def test_a_service_need_not_say_how_large_its_replicas_are(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as it:
        with pytest.raises(UnsupportedApi, match="does not offer DescribeLogDirs"):
            await it.connection.call(DescribeLogDirsRequest())
