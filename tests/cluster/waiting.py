"""Conditions that tests of a cluster of processes wait for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import trio

from controller.admin.client import AdminClient
from klamm.cli.demo.scenario import ORDERS, DemoScene
from transport.errors import ApiError, ErrorCode
from transport.messages import BrokerEndpoint, MetadataRequest, PartitionState
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import MetadataStore
from transport.wire import open_connection

PATIENCE_SECONDS = 60


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    with trio.fail_after(PATIENCE_SECONDS):
        while not await condition():
            await trio.sleep(0.05)


async def until_live(admin: AdminClient, brokers: Sequence[int]) -> None:
    """Wait until the active controller knows just these brokers, given in order, as live."""

    async def are_live() -> bool:
        return [broker.id for broker in (await admin.read_metadata([])).brokers] == list(brokers)

    await until(are_live)


async def until_controller(store: MetadataStore, controller_id: int) -> None:
    async def leads() -> bool:
        [znode] = await store.read([paths.CONTROLLER])
        return znode is not None and formats.decode_controller(znode.data) == controller_id

    await until(leads)


async def has_stepped_down(controller: BrokerEndpoint) -> bool:
    """Ask a controller itself, which answers as long as it lives."""
    async with open_connection(TcpNetwork(), controller.host, controller.port, client_id="test") as connection:
        try:
            await connection.call(MetadataRequest())
        except ApiError as error:
            return error.code is ErrorCode.NOT_CONTROLLER
        return False


async def orders(scene: DemoScene) -> PartitionState:
    """Return the partition that moves, as the active controller knows it."""
    [state] = (await scene.admin.read_metadata([ORDERS.topic])).partitions
    return state
