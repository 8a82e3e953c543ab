"""The running service on the memory store: its elections, its answers, and the cost of a lost session."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import pytest
import trio

import klamm
from controller.admin.client import open_klamm_admin
from controller.events import BrokerChange, PartitionModifications
from controller.node.service import ControllerService
from tests.kit.service import Controllers, connected, hang, until
from transport.errors import ApiError, ErrorCode
from transport.messages import ListPartitionReassignmentsRequest, MetadataRequest
from transport.metadata import ReplicaAssignment
from transport.store import formats, paths
from transport.store.protocol import Create, Delete


@pytest.mark.requirement("D1", "B4")
async def test_a_standby_says_that_it_is_not_the_controller(controllers: Controllers) -> None:
    await controllers.start_active()
    standby = await controllers.start(1002)
    async with connected(standby) as connection:
        with pytest.raises(ApiError) as caught:
            await connection.call(ListPartitionReassignmentsRequest())
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
    assert not standby.is_active


@pytest.mark.requirement("D1", "D7", "E1")
async def test_a_lost_session_costs_the_office_and_a_standby_takes_it(controllers: Controllers) -> None:
    first = await controllers.start_active()
    second = await controllers.start(1002)
    controllers.memory.expire(first.store.session_id)
    await until(lambda: second.is_active)
    await until(lambda: not first.is_active)
    async with controllers.memory.session() as store:
        [epoch] = await store.read([paths.CONTROLLER_EPOCH])
    assert epoch is not None
    assert epoch.data == b"2"


@pytest.mark.requirement("D2")
async def test_nothing_of_an_earlier_office_is_remembered_in_the_next(controllers: Controllers) -> None:
    """KAFKA-5310."""
    async with controllers.memory.session() as tool:
        service = await controllers.start_active()
        topic = formats.TopicZnode({0: ReplicaAssignment((1,))}, "id")
        await tool.multi([Create(paths.topic("orders"), formats.encode_topic(topic))])
        async with open_klamm_admin(bootstrap=[(service.endpoint.host, service.endpoint.port)]) as admin:
            with trio.fail_after(10):
                while not (await admin.read_metadata()).partitions:
                    await trio.sleep(0.001)
            controllers.memory.expire(service.store.session_id, reconnect=False)
            await tool.multi([Delete(paths.topic("orders"))])
            controllers.memory.reconnect(service.store.session_id)
            again = await admin.read_metadata()
        assert (again.controller_epoch, again.partitions) == (2, ())


@pytest.mark.requirement("E1")
async def test_the_end_of_a_session_does_not_wait_for_an_event_that_hangs(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA-6879, KAFKA-8532."""
    service = await controllers.start_active()
    await hang(service, monkeypatch, PartitionModifications("orders"))
    controllers.memory.expire(service.store.session_id)
    async with open_klamm_admin(bootstrap=[(service.endpoint.host, service.endpoint.port)]) as admin:
        with trio.fail_after(10):
            assert (await admin.read_metadata()).controller_epoch == 2


@pytest.mark.requirement("D12")
async def test_a_controller_that_is_told_to_stop_makes_way_at_once(controllers: Controllers) -> None:
    async with controllers.memory.session() as session:
        with trio.CancelScope() as stopping:
            async with trio.open_nursery() as inner:
                # Of a session that goes on: its end would make way as well.
                config = klamm.ControllerConfig(1001)
                running = partial(klamm.run, config, open_store=lambda: nullcontext(session))
                first: ControllerService = await inner.start(running)
                await until(lambda: first.is_active)
                second = await controllers.start(1002)
                stopping.cancel()
        await until(lambda: second.is_active)


async def test_requests_are_answered_when_the_controller_stops(controllers: Controllers) -> None:
    refused: list[ErrorCode] = []

    async def ask(service: ControllerService) -> None:
        try:
            await service.answer(MetadataRequest())
        except ApiError as error:
            refused.append(error.code)

    service = await controllers.start_active()
    for _ in range(10):
        controllers.nursery.start_soon(ask, service)
    await trio.lowlevel.checkpoint()
    controllers.memory.expire(service.store.session_id, reconnect=False)
    await until(lambda: len(refused) == 10)
    assert set(refused) == {ErrorCode.NOT_CONTROLLER}


@pytest.mark.requirement("E4")
async def test_scripted_events_drive_an_embedded_controller(controllers: Controllers) -> None:
    service = await controllers.start_active()
    service.tell(BrokerChange())
    await until(lambda: "BrokerChange" in service.statistics())
