"""The pages of a running controller: who is ready, and what is served where."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus

import pytest
import trio

import klamm
from controller.monitoring.http_pages import CannotServeMetrics
from controller.node.service import ControllerService
from tests.kit.scrape import get, scrape
from transport.host import Host
from transport.store.memory import MemoryZooKeeper

READY, NOT_READY = HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE


async def start(nursery: trio.Nursery, zookeeper: MemoryZooKeeper, controller_id: int) -> tuple[ControllerService, int]:
    config = klamm.ControllerConfig(controller_id, metrics_port=0)
    service: ControllerService = await nursery.start(partial(klamm.run, config, open_store=zookeeper.session))
    assert service.metrics_port is not None
    return service, service.metrics_port


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    with trio.fail_after(10):
        while not await condition():
            await trio.sleep(0.001)


async def until_page(port: int, status: int, text: str) -> None:
    async def shows() -> bool:
        return await get(port, "/readyz") == (status, f"{text}\n")

    await until(shows)


@pytest.mark.requirement("D11")
async def test_ready_is_who_leads_with_all_loaded_or_stands_by() -> None:
    zookeeper = MemoryZooKeeper(Host().now_ms)
    async with trio.open_nursery() as nursery:
        first, port = await start(nursery, zookeeper, 1001)
        await until_page(port, READY, "active")
        _, other = await start(nursery, zookeeper, 1002)
        await until_page(other, READY, "standing by for controller 1001")
        assert (await scrape(port))["kafka_controller_kafkacontroller_activecontrollercount"] == 1
        assert (await scrape(other))["kafka_controller_kafkacontroller_activecontrollercount"] == 0

        zookeeper.disconnect(first.store.session_id)
        await until_page(port, NOT_READY, "not ready: the session with the metadata store is suspended")
        assert await get(port, "/healthz") == (HTTPStatus.OK, "ok\n")
        zookeeper.reconnect(first.store.session_id)
        await until_page(port, READY, "active")
        zookeeper.expire(first.store.session_id)
        await until_page(other, READY, "active")
        await until_page(port, READY, "standing by for controller 1002")
        nursery.cancel_scope.cancel()


async def test_there_are_no_pages_unless_asked_for() -> None:
    zookeeper = MemoryZooKeeper(Host().now_ms)
    async with trio.open_nursery() as nursery:
        config = klamm.ControllerConfig(1001)
        service = await nursery.start(partial(klamm.run, config, open_store=zookeeper.session))
        assert service.metrics_port is None
        nursery.cancel_scope.cancel()


async def test_an_address_in_use_is_told_with_the_cure() -> None:
    zookeeper = MemoryZooKeeper(Host().now_ms)
    async with trio.open_nursery() as nursery:
        _, port = await start(nursery, zookeeper, 1001)
        config = klamm.ControllerConfig(1002, metrics_port=port)
        with pytest.raises(ExceptionGroup) as caught:
            await klamm.run(config, open_store=zookeeper.session)
        assert caught.group_contains(CannotServeMetrics, match=f"127.0.0.1:{port} .*name others with --metrics-host")
        nursery.cancel_scope.cancel()
