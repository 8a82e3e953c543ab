"""What tests of a cluster of processes wait for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from controller.cli.demo.scenario import ORDERS, Scene
from transport.messages import PartitionState
from transport.store import formats, paths
from transport.store.protocol import MetadataStore

PATIENCE_SECONDS = 60


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    with trio.fail_after(PATIENCE_SECONDS):
        while not await condition():
            await trio.sleep(0.05)


async def until_controller(store: MetadataStore, controller_id: int) -> None:
    async def leads() -> bool:
        [znode] = await store.read([paths.CONTROLLER])
        return znode is not None and formats.decode_controller(znode.data) == controller_id

    await until(leads)


async def orders(scene: Scene) -> PartitionState:
    """Return the partition that moves, as the active controller knows it."""
    [state] = (await scene.admin.describe_cluster([ORDERS.topic])).partitions
    return state
