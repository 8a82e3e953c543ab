"""The cluster of the demo: as processes on a development ZooKeeper, or as tasks of this process on a memory store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import trio
from attrs import define, field

from broker.config import BrokerConfig
from broker.reference.run import run_reference_broker
from controller.config import ControllerConfig
from controller.embedding import run
from transport.host import Host
from transport.network import TcpNetwork
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import MetadataStore
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import development_zookeeper

SESSION_TIMEOUT_MS = 2_000
FETCH_BYTES = 32 * 1024
"""Of one fetch: small, so that a replica takes long enough to catch up to be watched."""


class DemoCluster(Protocol):
    """What the demo needs of a cluster."""

    store: MetadataStore
    data_dir: Path

    async def kill(self, controller_id: int) -> None:
        """End a controller without giving it a chance to resign."""

    async def stop_brokers(self) -> None:
        """End the brokers in good order, so that their logs are at rest."""


def log_dir(data_dir: Path, broker_id: int) -> Path:
    """Return where a broker of the demo keeps its logs."""
    return data_dir / f"broker-{broker_id}"


# --- processes --------------------------------------------------------------------------------------------------


@define
class ProcessCluster:
    """Every broker and controller is a process of its own, with its output in `data_dir`."""

    store: MetadataStore
    data_dir: Path
    zookeeper: str
    _processes: dict[int, subprocess.Popen[bytes]] = field(factory=dict)

    def start(self, kind: str, id_: int, *options: str) -> None:
        """Start a broker or a controller."""
        command = [sys.executable, "-m", "controller.cli", kind, "run", "--id", str(id_), "--port", "0", *options]
        command += ["--zookeeper", self.zookeeper, "--session-timeout", str(SESSION_TIMEOUT_MS)]
        with (self.data_dir / f"{kind}-{id_}.log").open("wb") as output:
            self._processes[id_] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    async def kill(self, controller_id: int) -> None:
        """Kill a controller with SIGKILL."""
        self._processes[controller_id].send_signal(signal.SIGKILL)
        await self._end(controller_id)

    async def stop_brokers(self) -> None:
        """Stop all brokers with SIGTERM."""
        for id_ in [id_ for id_ in self._processes if id_ < FIRST_CONTROLLER]:
            await self._end(id_)

    async def stop(self) -> None:
        """Stop everything that still runs."""
        for id_ in list(self._processes):
            await self._end(id_)

    async def _end(self, id_: int) -> None:
        process = self._processes.pop(id_)
        process.terminate()
        with trio.move_on_after(5):
            while process.poll() is None:
                await trio.sleep(0.02)
        process.kill()
        process.wait()


FIRST_CONTROLLER = 1001


@asynccontextmanager
async def process_cluster(
    data_dir: Path, brokers: tuple[int, ...], controllers: tuple[int, ...]
) -> AsyncIterator[DemoCluster]:
    """Run the cluster as processes on a development ZooKeeper in `data_dir`."""
    async with development_zookeeper(data_dir / "zookeeper") as server, open_zookeeper(server.address) as store:
        cluster = ProcessCluster(store, data_dir, server.address)
        try:
            for id_ in controllers:
                cluster.start("controller", id_)
            for id_ in brokers:
                options = ("--log-dir", str(log_dir(data_dir, id_)), "--replica-fetch-max-bytes", str(FETCH_BYTES))
                cluster.start("broker", id_, *options, "--min-insync-replicas", "2")
            yield cluster
        finally:
            with trio.CancelScope(shield=True):
                await cluster.stop()


# --- one process ------------------------------------------------------------------------------------------------


@define
class InProcessCluster:
    """Every broker and controller is a task of this process, with a session of its own on one memory store."""

    store: MetadataStore
    data_dir: Path
    zookeeper: MemoryZooKeeper
    nursery: trio.Nursery
    _tasks: dict[int, tuple[trio.CancelScope, trio.Event, MetadataStore]] = field(factory=dict)

    async def start(self, id_: int, service: Callable[..., object]) -> None:
        """Start `service(store=..., task_status=...)` on a session of its own."""
        await self.nursery.start(self._run, id_, service)

    async def _run(
        self, id_: int, service: Callable[..., object], *, task_status: trio.TaskStatus[None]
    ) -> None:
        ended = trio.Event()
        with trio.CancelScope() as scope:
            async with self.zookeeper.session() as session, trio.open_nursery() as nursery:
                self._tasks[id_] = scope, ended, session
                await nursery.start(partial(service, store=session))  # type: ignore[arg-type]
                task_status.started()
        ended.set()

    async def kill(self, controller_id: int) -> None:
        """Cut a controller's session first, so that nothing that it does at its end reaches the store."""
        self.zookeeper.expire(self._tasks[controller_id][2].session_id, reconnect=False)
        await self._end(controller_id)

    async def stop_brokers(self) -> None:
        """Cancel the brokers."""
        for id_ in [id_ for id_ in self._tasks if id_ < FIRST_CONTROLLER]:
            await self._end(id_)

    async def _end(self, id_: int) -> None:
        scope, ended, _ = self._tasks.pop(id_)
        scope.cancel()
        await ended.wait()


@asynccontextmanager
async def in_process_cluster(
    data_dir: Path, brokers: tuple[int, ...], controllers: tuple[int, ...]
) -> AsyncIterator[DemoCluster]:
    """Run the cluster in this process, on loopback sockets and a memory store."""
    host, network = Host(), TcpNetwork()
    zookeeper = MemoryZooKeeper(host.now_ms)
    async with zookeeper.session() as store, trio.open_nursery() as nursery:
        cluster = InProcessCluster(store, data_dir, zookeeper, nursery)
        for id_ in controllers:
            await cluster.start(id_, partial(run, ControllerConfig(id_), network=network, host=host))
        for id_ in brokers:
            config = BrokerConfig(
                id_, log_dir(data_dir, id_), min_insync_replicas=2, replica_fetch_max_bytes=FETCH_BYTES
            )
            await cluster.start(id_, partial(run_reference_broker, config, network=network, host=host))
        yield cluster
        nursery.cancel_scope.cancel()
