"""The running service on the memory store: who leads, who answers, what a lost session costs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import pytest
import trio

import klamm
from controller.admin.client import open_admin
from controller.events import BrokerChange, PartitionModifications
from controller.node.service import ControllerService
from transport.errors import ApiError, ErrorCode
from transport.host import Host
from transport.messages import ListPartitionReassignmentsRequest, MetadataRequest
from transport.metadata import ReplicaAssignment
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import Create, Delete
from transport.wire import open_connection


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(10):
        while not condition():
            await trio.sleep(0.001)


async def start(nursery: trio.Nursery, zookeeper: MemoryZooKeeper, controller_id: int) -> ControllerService:
    config = klamm.ControllerConfig(controller_id)
    service: ControllerService = await nursery.start(partial(klamm.run, config, open_store=zookeeper.session))
    return service


@pytest.mark.requirement("D1", "B4")
async def test_a_standby_says_that_it_is_not_the_controller() -> None:
    zookeeper = MemoryZooKeeper(Host().now_ms)
    async with trio.open_nursery() as nursery:
        leading = await start(nursery, zookeeper, 1001)
        await until(lambda: leading.is_active)
        standby = await start(nursery, zookeeper, 1002)
        endpoint = standby.endpoint
        async with open_connection(TcpNetwork(), endpoint.host, endpoint.port, client_id="test") as connection:
            with pytest.raises(ApiError) as caught:
                await connection.call(ListPartitionReassignmentsRequest())
        assert caught.value.code is ErrorCode.NOT_CONTROLLER
        assert not standby.is_active
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("D1", "D7", "E1")
async def test_a_lost_session_costs_the_office_and_a_standby_takes_it() -> None:
    zookeeper = MemoryZooKeeper(Host().now_ms)
    async with trio.open_nursery() as nursery:
        first = await start(nursery, zookeeper, 1001)
        await until(lambda: first.is_active)
        second = await start(nursery, zookeeper, 1002)
        zookeeper.expire(first.store.session_id)
        await until(lambda: second.is_active)
        await until(lambda: not first.is_active)
        async with zookeeper.session() as store:
            [epoch] = await store.read([paths.CONTROLLER_EPOCH])
        assert epoch is not None
        assert epoch.data == b"2"
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("D2")
async def test_nothing_of_an_earlier_office_is_remembered_in_the_next() -> None:
    """KAFKA-5310."""
    zookeeper = MemoryZooKeeper(Host().now_ms)
    async with zookeeper.session() as tool, trio.open_nursery() as nursery:
        service = await start(nursery, zookeeper, 1001)
        await until(lambda: service.is_active)
        topic = formats.TopicZnode({0: ReplicaAssignment((1,))}, "id")
        await tool.multi([Create(paths.topic("orders"), formats.encode_topic(topic))])
        async with open_admin(bootstrap=[(service.endpoint.host, service.endpoint.port)]) as admin:
            with trio.fail_after(10):
                while not (await admin.read_metadata()).partitions:
                    await trio.sleep(0.001)
            zookeeper.expire(service.store.session_id, reconnect=False)
            await tool.multi([Delete(paths.topic("orders"))])
            zookeeper.reconnect(service.store.session_id)
            again = await admin.read_metadata()
        assert (again.controller_epoch, again.partitions) == (2, ())
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("E1")
async def test_the_end_of_a_session_does_not_wait_for_an_event_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-6879, KAFKA-8532."""
    zookeeper = MemoryZooKeeper(Host().now_ms)
    async with trio.open_nursery() as nursery:
        service = await start(nursery, zookeeper, 1001)
        await until(lambda: service.is_active)
        is_stuck = trio.Event()

        async def read(*_: object, **__: object) -> None:
            is_stuck.set()
            await trio.sleep_forever()

        with monkeypatch.context() as patched:
            patched.setattr(service.store, "read", read)
            service.tell(PartitionModifications("orders"))
            await is_stuck.wait()
        zookeeper.expire(service.store.session_id)
        async with open_admin(bootstrap=[(service.endpoint.host, service.endpoint.port)]) as admin:
            with trio.fail_after(10):
                assert (await admin.read_metadata()).controller_epoch == 2
        nursery.cancel_scope.cancel()


@pytest.mark.requirement("D12")
async def test_a_controller_that_is_told_to_stop_makes_way_at_once() -> None:
    zookeeper = MemoryZooKeeper(Host().now_ms)
    async with zookeeper.session() as session, trio.open_nursery() as nursery:
        with trio.CancelScope() as stopping:
            async with trio.open_nursery() as inner:
                # Of a session that goes on: its end would make way as well.
                config = klamm.ControllerConfig(1001)
                running = partial(klamm.run, config, open_store=lambda: nullcontext(session))
                first: ControllerService = await inner.start(running)
                await until(lambda: first.is_active)
                second = await start(nursery, zookeeper, 1002)
                stopping.cancel()
        await until(lambda: second.is_active)
        nursery.cancel_scope.cancel()


async def test_requests_are_answered_when_the_controller_stops() -> None:
    zookeeper = MemoryZooKeeper(Host().now_ms)
    refused: list[ErrorCode] = []

    async def ask(service: ControllerService) -> None:
        try:
            await service.answer(MetadataRequest())
        except ApiError as error:
            refused.append(error.code)

    async with trio.open_nursery() as nursery:
        service = await start(nursery, zookeeper, 1001)
        await until(lambda: service.is_active)
        for _ in range(10):
            nursery.start_soon(ask, service)
        await trio.lowlevel.checkpoint()
        zookeeper.expire(service.store.session_id, reconnect=False)
        await until(lambda: len(refused) == 10)
        nursery.cancel_scope.cancel()
    assert set(refused) == {ErrorCode.NOT_CONTROLLER}


@pytest.mark.requirement("E4")
async def test_scripted_events_drive_an_embedded_controller() -> None:
    zookeeper = MemoryZooKeeper(Host().now_ms)
    async with trio.open_nursery() as nursery:
        service = await start(nursery, zookeeper, 1001)
        await until(lambda: service.is_active)
        service.tell(BrokerChange())
        await until(lambda: "BrokerChange" in service.statistics())
        nursery.cancel_scope.cancel()
