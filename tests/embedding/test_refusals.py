"""A controller refuses to stand in a cluster of another kind, and to fail again and again on one request."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

import klamm
from controller.events import ControllerEvent, RequestEvent
from controller.model.context import ControllerContext
from controller.model.rounds import Rounds
from controller.node import dispatch
from controller.node.controller_election import ForeignCluster, refuse_foreign
from tests.kit.service import Controllers, until
from transport.errors import ApiError, ErrorCode
from transport.host import Host
from transport.messages import MetadataRequest
from transport.metadata import BrokerRegistration
from transport.store import formats, paths
from transport.store.controllers import find_controller
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import Create, Delete, StoreError, ensure_paths
from transport.store.tree import Access

KAFKA_BROKER = (
    b'{"version":5,"host":"h","port":9092,"endpoints":["PLAINTEXT://h:9092"],"jmx_port":-1,"timestamp":"0",'
    b'"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"features":{}}'
)


async def test_a_cluster_with_a_kafka_broker_is_left_alone(controllers: Controllers) -> None:
    async with controllers.memory.session() as store:
        await ensure_paths(store, [paths.BROKER_IDS])
        await store.multi([Create(paths.broker(5), KAFKA_BROKER, ephemeral=True)])
        with pytest.raises(ForeignCluster, match="broker 5 is not of this kind"):
            await controllers.start()
        assert await store.read([paths.CONTROLLER, paths.CONTROLLER_EPOCH, paths.KLAMM_CONTROLLERS]) == [None] * 3


async def test_a_cluster_with_a_kafka_controller_is_left_alone(controllers: Controllers) -> None:
    async with controllers.memory.session() as store:
        await store.multi([Create(paths.CONTROLLER, formats.encode_controller(1, 0), ephemeral=True)])
        with pytest.raises(ForeignCluster, match="/controller is held by another kind"):
            await controllers.start()


@pytest.mark.parametrize("data", [b'{"endpoints":[1e30]}', b'{"endpoints":5,"host":null}', b'{"endpoints":["KLAMM"]}'])
async def test_a_registration_that_says_no_address_is_damaged_and_not_foreign(
    memory: MemoryZooKeeper, data: bytes
) -> None:
    async with memory.session() as store:
        await ensure_paths(store, [paths.BROKER_IDS])
        await store.multi([Create(paths.broker(5), data)])
        await refuse_foreign(store)


async def test_a_registration_that_may_not_be_read_is_foreign_unless_there_are_brokers_of_ours(
    memory: MemoryZooKeeper,
) -> None:
    async with memory.session() as store:
        await ensure_paths(store, [paths.BROKER_IDS])
        await store.multi([Create(paths.broker(5), KAFKA_BROKER)])
        memory.tree.allow(paths.broker(5), Access.NONE)
        with pytest.raises(ForeignCluster, match="broker 5 is not of this kind"):
            await refuse_foreign(store)
        ours = formats.encode_broker(BrokerRegistration(1, "127.0.0.1", 9092, -1), 0)
        await store.multi([Create(paths.broker(1), ours)])
        await refuse_foreign(store)
        memory.tree.allow(paths.BROKER_IDS, Access.NONE)
        with pytest.raises(StoreError, match="the children of /brokers/ids may not be listed"):
            await refuse_foreign(store)


async def test_our_own_cluster_is_not_foreign(controllers: Controllers) -> None:
    await controllers.start_active()
    async with controllers.memory.session() as store:
        await refuse_foreign(store)


async def test_a_twin_of_a_live_controller_does_not_start(controllers: Controllers) -> None:
    async with controllers.memory.session() as store:
        service = await controllers.start_active()
        with pytest.raises(klamm.ControllerIdInUse, match=r"^controller id 1001 is already live at 127.0.0.1:\d+: "):
            await controllers.start()
        assert await find_controller(store) == service.endpoint


@pytest.mark.parametrize("left", [b'{"host":"127.0.0.1","port":1}', b"damage"])
async def test_the_successor_of_a_killed_controller_need_not_wait_for_its_session_to_end(
    controllers: Controllers, left: bytes
) -> None:
    async with controllers.memory.session() as store:
        await ensure_paths(store, paths.PERSISTENT)
        await store.multi([Create(paths.controller_endpoint(1001), left, ephemeral=True)])
        service = await controllers.start_active()
        assert await find_controller(store) == service.endpoint


async def test_a_controller_whose_endpoint_ended_before_its_office_is_not_foreign(memory: MemoryZooKeeper) -> None:
    """The endpoint is that of its latest session, `/controller` may still be that of the one before."""
    async with memory.session() as store:
        await ensure_paths(store, paths.PERSISTENT)
        await store.multi([Create(paths.CONTROLLER, formats.encode_controller(1001, 0), ephemeral=True)])
        await refuse_foreign(store)


async def test_a_request_that_brings_the_controller_down_is_set_aside(
    controllers: Controllers, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison = MetadataRequest(("poison",))
    sound = dispatch.rounds_for

    def rounds_for(context: ControllerContext, event: ControllerEvent, host: Host) -> Rounds[object]:
        if isinstance(event, RequestEvent) and event.request == poison:
            raise ZeroDivisionError
        return sound(context, event, host)

    monkeypatch.setattr(dispatch, "rounds_for", rounds_for)
    service = await controllers.start()
    codes = []
    for _ in range(4):
        await until(lambda: service.is_active)
        with pytest.raises(ApiError) as caught:
            await service.answer(poison)
        codes.append(caught.value.code)
    assert codes == [ErrorCode.REQUEST_TIMED_OUT] * 3 + [ErrorCode.INVALID_REQUEST]
    assert await service.answer(MetadataRequest()) is not None


async def test_nobody_is_elected_on_a_damaged_epoch_until_it_is_gone(controllers: Controllers) -> None:
    async with controllers.memory.session() as store:
        await store.multi([Create(paths.CONTROLLER_EPOCH, b"damage")])
        with capture_logs() as logs:
            service = await controllers.start()
            await until(lambda: any(log["event"] == "not standing for election" for log in logs))
        reason = f"{paths.CONTROLLER_EPOCH}: not a number: b'damage': nobody is elected until that znode is repaired"
        assert logs[-1]["reason"].startswith(reason)
        await store.multi([Delete(paths.CONTROLLER_EPOCH)])
        await until(lambda: service.is_active)


async def test_a_broker_whose_registration_is_damaged_makes_the_cluster_no_foreign_one(
    controllers: Controllers,
) -> None:
    async with controllers.memory.session() as store:
        await ensure_paths(store, paths.PERSISTENT)
        for broker_id, data in enumerate((b"", b"[]", b"{}", b'{"endpoints":["KLAMM://h:x"]}')):
            await store.multi([Create(paths.broker(broker_id), data, ephemeral=True)])
        await controllers.start_active()
