"""The demo's cluster as tasks of one process, with loopback sockets and an in-memory store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import trio
from attrs import define, field

from broker.config import BrokerConfig
from broker.reference.run import run_reference_broker
from controller.config import ControllerConfig
from controller.embedding import run
from klamm.cli.demo.clusters import BROKERS, CONTROLLERS, FETCH_BYTES, DemoCluster, log_dir
from transport.host import Host
from transport.network import TcpNetwork
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import MetadataStore


@define
class TaskCluster:
    """A cluster whose brokers and controllers are tasks, each with its own session of one in-memory store."""

    store: MetadataStore
    data_dir: Path
    zookeeper: MemoryZooKeeper
    nursery: trio.Nursery
    _tasks: dict[int, tuple[trio.CancelScope, trio.Event, MetadataStore]] = field(factory=dict)

    async def start(self, id_: int, service: Callable[[MetadataStore], Callable[..., Any]]) -> None:
        """Start `service` with a session of its own."""
        await self.nursery.start(self._run, id_, service)

    async def _run(
        self, id_: int, service: Callable[[MetadataStore], Callable[..., Any]], *, task_status: trio.TaskStatus[None]
    ) -> None:
        ended = trio.Event()
        with trio.CancelScope() as scope:
            async with self.zookeeper.session() as session, trio.open_nursery() as nursery:
                self._tasks[id_] = scope, ended, session
                await nursery.start(service(session))
                task_status.started()
        ended.set()

    async def kill(self, id_: int) -> None:
        """Cut the session first, so that nothing the controller does while it ends reaches the store."""
        self.zookeeper.expire(self._tasks[id_][2].session_id, reconnect=False)
        await self._end(id_)

    async def stop_brokers(self) -> None:
        """Cancel the brokers."""
        for id_ in [id_ for id_ in self._tasks if id_ in BROKERS]:
            await self._end(id_)

    async def _end(self, id_: int) -> None:
        scope, ended, _ = self._tasks.pop(id_)
        scope.cancel()
        await ended.wait()


@asynccontextmanager
async def task_cluster(data_dir: Path, *, auto_leader_rebalance_enable: bool = True) -> AsyncIterator[DemoCluster]:
    """Run the cluster in this process; without rebalancing, leaders stay where they are if they can."""
    zookeeper = MemoryZooKeeper(Host().now_ms)
    async with zookeeper.session() as store, trio.open_nursery() as nursery:
        cluster = TaskCluster(store, data_dir, zookeeper, nursery)
        for id_ in CONTROLLERS:
            config = ControllerConfig(id_, auto_leader_rebalance_enable=auto_leader_rebalance_enable)
            await cluster.start(id_, partial(_controller, config))
        for id_ in BROKERS:
            await cluster.start(id_, partial(_broker, id_, data_dir))
        yield cluster
        nursery.cancel_scope.cancel()


def _controller(config: ControllerConfig, session: MetadataStore) -> Callable[..., Any]:
    return partial(run, config, open_store=lambda: nullcontext(session))


def _broker(id_: int, data_dir: Path, session: MetadataStore) -> Callable[..., Any]:
    config = BrokerConfig(id_, log_dir(data_dir, id_), min_insync_replicas=2, replica_fetch_max_bytes=FETCH_BYTES)
    return partial(run_reference_broker, config, store=session, network=TcpNetwork(), host=Host())
