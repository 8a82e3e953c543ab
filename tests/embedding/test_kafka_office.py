"""The running service among Kafka's brokers: its office ends with its session, with a release, and with a stranger."""

from __future__ import annotations

import pytest

from controller.model.context import ControllerContext
from controller.node.controller_election import ForeignCluster
from controller.node.service import ControllerService
from tests.kit.kafka_registrations import MIGRATION
from tests.kit.service import Controllers, until
from transport.store import formats, paths
from transport.store.protocol import Create, Delete, Set, ensure_paths


def reason_of(service: ControllerService) -> str:
    return service.readiness().reason


async def test_a_standby_takes_over_when_the_session_of_the_active_one_ends(controllers: Controllers) -> None:
    first = await controllers.start_active(kafka=True)
    second = await controllers.start(1002, kafka=True)
    await until(lambda: reason_of(second) == "standing by for controller 1001")
    # The first one is back only afterwards: it could win the election as well.
    controllers.memory.expire(first.store.session_id, reconnect=False)
    await until(lambda: second.is_active)
    controllers.memory.reconnect(first.store.session_id)
    await until(lambda: reason_of(first) == "standing by for controller 1002")
    async with controllers.memory.session() as store:
        [holder, epoch] = await store.read([paths.CONTROLLER, paths.CONTROLLER_EPOCH])
    assert holder is not None
    assert epoch is not None
    assert (formats.decode_controller(holder.data), holder.stat.ephemeral_owner, epoch.data) == (1002, 0, b"2")


async def test_a_release_is_obeyed_by_all_until_the_next_order(controllers: Controllers) -> None:
    first = await controllers.start_active(kafka=True)
    second = await controllers.start(1002, kafka=True)
    async with controllers.memory.session() as store:
        await store.multi([Create(paths.RELEASED)])
        for service in (first, second):
            await until(lambda: "the office was released: `klamm" in reason_of(service))  # noqa: B023  awaited here
            assert service.readiness().is_ready
        assert await store.read([paths.CONTROLLER, paths.OFFICE_LOCK]) == [None, None]
        await store.multi([Delete(paths.RELEASED), Create(paths.TAKE_OVER)])
        await until(lambda: first.is_active or second.is_active)


async def test_a_controller_of_kafkas_ends_our_office(controllers: Controllers) -> None:
    service = await controllers.start_active(kafka=True)
    context = context_of(service)
    async with controllers.memory.session() as store:
        claim = Create(paths.CONTROLLER, formats.encode_controller(3, 0), ephemeral=True)
        await store.multi([Delete(paths.CONTROLLER), claim, Set(paths.CONTROLLER_EPOCH, b"2", -1)])
        await until(lambda: not service.is_active)
        await until(lambda: reason_of(service).endswith("`klamm controller take-over` ends this"))
        assert [znode is None for znode in await store.read([paths.OFFICE_LOCK, paths.RELEASED])] == [True, False]
        await store.multi([Create(paths.TAKE_OVER), Delete(paths.RELEASED)])
        await until(lambda: service.is_active)
    assert context_of(service).epoch == context.epoch + 2


def context_of(service: ControllerService) -> ControllerContext:
    assert service.office is not None
    return service.office.context


async def test_a_cluster_that_migrates_to_kraft_is_left_alone(controllers: Controllers) -> None:
    async with controllers.memory.session() as store:
        await ensure_paths(store, paths.PERSISTENT)
        await store.multi([Create(paths.MIGRATION, MIGRATION)])
        with pytest.raises(ForeignCluster, match="/migration exists"):
            await controllers.start(kafka=True)


async def test_a_standby_stands_down_while_kraft_migrates(controllers: Controllers) -> None:
    first = await controllers.start_active(kafka=True)
    second = await controllers.start(1002, kafka=True)
    async with controllers.memory.session() as store:
        await store.multi([Create(paths.MIGRATION, MIGRATION)])
        controllers.memory.expire(first.store.session_id)
        for service in (first, second):
            await until(lambda: "/migration exists" in reason_of(service))  # noqa: B023  awaited here
            assert service.readiness().is_ready
        await store.multi([Delete(paths.MIGRATION)])
        await until(lambda: first.is_active or second.is_active)


async def test_a_controller_of_our_own_kind_stays_away_from_kafkas_brokers(controllers: Controllers) -> None:
    await controllers.start_active(kafka=True)
    with pytest.raises(ForeignCluster, match="brokers here: start this controller with --kafka"):
        await controllers.start(1002)
