"""The pages of a running controller: readiness, and the content of each path."""

from __future__ import annotations

from http import HTTPStatus

import pytest
import trio

from controller.monitoring.http_pages import CannotServeMetrics
from controller.node.service import ControllerService
from tests.kit.scrape import get, scrape
from tests.kit.service import Controllers

READY, NOT_READY = HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE


def metrics_port(service: ControllerService) -> int:
    assert service.metrics_port is not None
    return service.metrics_port


async def until_page(port: int, status: int, text: str) -> None:
    with trio.fail_after(10):
        while await get(port, "/readyz") != (status, f"{text}\n"):
            await trio.sleep(0.001)


@pytest.mark.requirement("D11")
async def test_ready_is_who_leads_with_all_loaded_or_stands_by(controllers: Controllers) -> None:
    first = await controllers.start(metrics_port=0)
    port = metrics_port(first)
    await until_page(port, READY, "active")
    other = metrics_port(await controllers.start(1002, metrics_port=0))
    await until_page(other, READY, "standing by for controller 1001")
    assert (await scrape(port))["kafka_controller_kafkacontroller_activecontrollercount"] == 1
    assert (await scrape(other))["kafka_controller_kafkacontroller_activecontrollercount"] == 0

    controllers.memory.disconnect(first.store.session_id)
    await until_page(port, NOT_READY, "not ready: the session with the metadata store is suspended")
    assert await get(port, "/healthz") == (HTTPStatus.OK, "ok\n")
    controllers.memory.reconnect(first.store.session_id)
    await until_page(port, READY, "active")
    controllers.memory.expire(first.store.session_id)
    await until_page(other, READY, "active")
    await until_page(port, READY, "standing by for controller 1002")


async def test_there_are_no_pages_unless_asked_for(controllers: Controllers) -> None:
    assert (await controllers.start()).metrics_port is None


async def test_an_address_in_use_is_told_with_the_cure(controllers: Controllers) -> None:
    port = (await controllers.start(metrics_port=0)).metrics_port
    with pytest.raises(ExceptionGroup) as caught:
        await controllers.start(1002, metrics_port=port)
    assert caught.group_contains(CannotServeMetrics, match=f"127.0.0.1:{port} .*name others with --metrics-host")
