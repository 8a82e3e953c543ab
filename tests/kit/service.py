"""Controllers in the process of the test, most of them with a metadata store in memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest
import trio
from attrs import frozen

import klamm
from controller.events import ControllerEvent
from controller.node.service import ControllerService
from tests.kit import kafka_registrations
from transport.errors import ApiError, ErrorCode
from transport.messages import Request
from transport.network import TcpNetwork
from transport.store.memory import MemoryZooKeeper
from transport.wire import Connection, open_connection


async def until(condition: Callable[[], bool]) -> None:
    """Wait for ten seconds at most."""
    with trio.fail_after(10):
        while not condition():
            await trio.sleep(0.001)


@frozen
class Controllers:
    """Controllers that run until the test ends, on a store in memory."""

    memory: MemoryZooKeeper
    nursery: trio.Nursery

    async def start(self, controller_id: int = 1001, **options: Any) -> ControllerService:
        """Start one and wait until it listens; `options` are those of `klamm.run` and of its configuration."""
        run = {name: options.pop(name) for name in ("observer", "authorizer", "network") if name in options}
        config = klamm.ControllerConfig(controller_id, **options)
        if config.kafka:
            async with self.memory.session() as store:
                await kafka_registrations.begin_cluster(store)
        running = partial(klamm.run, config, open_store=self.memory.session, **run)
        service: ControllerService = await self.nursery.start(running)
        return service

    async def start_active(self, **options: Any) -> ControllerService:
        """Start one and wait until it is the active controller."""
        service = await self.start(**options)
        await until(lambda: service.is_active)
        return service


async def hang(service: ControllerService, monkeypatch: pytest.MonkeyPatch, event: ControllerEvent) -> None:
    """Have the controller process an event, and return when it hangs in the event's first read for ever."""
    is_stuck = trio.Event()

    async def read(*_: object, **__: object) -> None:
        is_stuck.set()
        await trio.sleep_forever()

    with monkeypatch.context() as patched:
        patched.setattr(service.store, "read", read)
        service.tell(event)
        await is_stuck.wait()


def connected(service: ControllerService, client_id: str = "test") -> AbstractAsyncContextManager[Connection]:
    """Connect to a controller over TCP."""
    return open_connection(TcpNetwork(), service.endpoint.host, service.endpoint.port, client_id=client_id)


async def error_code(connection: Connection, request: Request[object]) -> ErrorCode:
    """Return the error that a whole request is answered with."""
    try:
        await connection.call(request)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE
