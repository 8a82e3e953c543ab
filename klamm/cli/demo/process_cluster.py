"""The demo's cluster as processes with a ZooKeeper server."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from klamm.cli.demo.clusters import BROKERS, CONTROLLERS, FETCH_BYTES, DemoCluster, log_dir
from transport.child_process import spawn
from transport.store.protocol import MetadataStore
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import development_zookeeper

SESSION_TIMEOUT_MS: Final = 2_000
STOP_SECONDS: Final = 5.0


@define
class ProcessCluster:
    """A cluster whose brokers and controllers are processes, with their output in `data_dir`."""

    store: MetadataStore
    data_dir: Path
    zookeeper: str
    processes: dict[int, subprocess.Popen[bytes]] = field(factory=dict)

    def start_brokers(self, ids: Iterable[int] = BROKERS) -> None:
        """Start brokers, all by default."""
        for id_ in ids:
            where = ("--log-dir", str(log_dir(self.data_dir, id_)))
            settings = ("--replica-fetch-max-bytes", str(FETCH_BYTES), "--min-insync-replicas", "2")
            # All brokers stop together at the end: none should wait for another to take over its leaderships.
            self.start(id_, "klamm", "broker", "run", *where, *settings, "--controlled-shutdown-max-retries", "1")

    def start(self, id_: int, module: str, *arguments: str) -> None:
        """Start a module with the options that all services share."""
        command = [sys.executable, "-m", module, *arguments, "--id", str(id_), "--port", "0"]
        command += ["--zookeeper", self.zookeeper, "--session-timeout", str(SESSION_TIMEOUT_MS)]
        self.processes[id_] = spawn(command, self.data_dir / f"{id_}.log")

    async def kill(self, id_: int) -> None:
        """Kill a controller or a broker with SIGKILL."""
        self.processes[id_].send_signal(signal.SIGKILL)
        await self._end([id_])

    async def stop_brokers(self) -> None:
        """Stop all brokers with SIGTERM."""
        await self._end([id_ for id_ in self.processes if id_ not in CONTROLLERS])

    async def stop(self) -> None:
        """Stop all processes that still run."""
        await self._end(list(self.processes))

    async def _end(self, ids: list[int]) -> None:
        ending = [self.processes.pop(id_) for id_ in ids]
        for process in ending:
            process.terminate()
        with trio.move_on_after(STOP_SECONDS):
            while any(process.poll() is None for process in ending):
                await trio.sleep(0.02)
        for process in ending:
            process.kill()
            process.wait()


@asynccontextmanager
async def process_cluster(data_dir: Path) -> AsyncIterator[DemoCluster]:
    """Run the cluster as processes with a development ZooKeeper in `data_dir`."""
    async with (
        development_zookeeper(data_dir / "zookeeper") as server,
        open_zookeeper(server.address) as store,
        stopping(ProcessCluster(store, data_dir, server.address)) as cluster,
    ):
        for id_ in CONTROLLERS:
            cluster.start(id_, "klamm", "controller", "run")
        cluster.start_brokers()
        yield cluster


@asynccontextmanager
async def stopping(cluster: ProcessCluster) -> AsyncIterator[ProcessCluster]:
    """Stop all processes at the end, even after an error."""
    try:
        yield cluster
    finally:
        with trio.CancelScope(shield=True):
            await cluster.stop()
