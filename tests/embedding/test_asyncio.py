"""A controller in an asyncio program: its exceptions, its cancellation, and the shared run."""

from __future__ import annotations

import asyncio

import pytest

import klamm
from controller.node.service import ControllerService
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import StoreUnavailable


@pytest.mark.requirement("E4")
def test_what_a_controller_raises_is_raised_in_the_asyncio_task() -> None:
    config = klamm.ControllerConfig(1001, zookeeper_connect="127.0.0.1:1", zookeeper_connection_timeout_ms=1000)

    async def main() -> None:
        await klamm.run_asyncio(config)

    with pytest.RaisesGroup(StoreUnavailable, flatten_subgroups=True):
        asyncio.run(main())


async def until_active(service: ControllerService) -> None:
    while not service.is_active:
        await asyncio.sleep(0.001)


def test_one_controller_after_another_in_one_event_loop(memory: MemoryZooKeeper) -> None:

    async def lead_once() -> int:
        started: asyncio.Future[ControllerService] = asyncio.get_running_loop().create_future()
        config = klamm.ControllerConfig(1001)
        run = klamm.run_asyncio(config, on_started=started.set_result, open_store=memory.session)
        task = asyncio.create_task(run)
        service = await started
        await until_active(service)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not service.is_active
        return service.endpoint.port

    async def main() -> list[int]:
        return [await lead_once() for _ in range(3)]

    assert len(asyncio.run(main())) == 3
