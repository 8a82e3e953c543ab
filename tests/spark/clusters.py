"""Spark clusters of real processes on loopback: a standalone master with workers, a server of Spark Connect.

They come from PySpark's own jars. Their Python has NumPy and PyArrow, and nothing of this program.
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa
import trio
from attrs import frozen

from tests.spark.bridge.processes import until

_JAVA: Final = "-XX:-UsePerfData -XX:+UseSerialGC -XX:TieredStopAtLevel=1"

SMALL: Final = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": _JAVA,
    "spark.sql.shuffle.partitions": "4",
}
"""Settings of a session whose executors share a small machine with everything else."""


@frozen
class SparkProcess:
    """A process of a cluster, in a group of its own with what it starts, and the file that it logs to."""

    process: trio.Process
    log: Path

    def kill(self) -> None:
        """Kill it with what it started, as a machine that loses its power does."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    async def says(self, pattern: str) -> str:
        """Wait for a line of its log; return the pattern's group."""

        def said() -> re.Match[str] | None:
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            return re.search(pattern, self.log.read_text())

        await until(said)
        found = said()
        assert found is not None
        return found[1]


@frozen
class StandaloneCluster:
    """A master's address and the workers."""

    master: str
    workers: Sequence[SparkProcess]


@asynccontextmanager
async def standalone_cluster(folder: Path, workers: int = 2) -> AsyncIterator[StandaloneCluster]:
    """Run a master and workers of one core each."""
    at = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    async with AsyncExitStack() as stack:
        command = ("spark-class", "org.apache.spark.deploy.master.Master", *at)
        master = await stack.enter_async_context(_service(folder / "master", command))
        address = await master.says(r"Starting Spark master at (spark://\S+)")
        worker_command = ("spark-class", "org.apache.spark.deploy.worker.Worker", *at, "--cores", "1", "--memory", "1g")
        started = []
        for number in range(workers):
            home = folder / f"worker{number}"
            worker = _service(home, (*worker_command, "--work-dir", str(home / "work"), address))
            started.append(await stack.enter_async_context(worker))
        for service in started:
            await service.says(r"(Successfully registered with master)")
        yield StandaloneCluster(address, started)


@asynccontextmanager
async def connect_server(folder: Path, settled: Mapping[str, str] = MappingProxyType({})) -> AsyncIterator[str]:
    """Run a server of Spark Connect that computes in its own JVM, with more settings; give its address."""
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder} {_JAVA}",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        **settled,
    }
    settings = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = ("spark-submit", "--class", server, "--master", "local[2]", *settings)
    async with _service(folder / "connect", command) as service:
        yield "sc://" + await service.says(r"Spark Connect server started at: (\S+)")


def bare_python(folder: Path) -> Path:
    """Return a Python that can import NumPy, PyArrow, and what the environment names."""
    packages = folder / "packages"
    packages.mkdir(parents=True)
    for package in (np, pa):
        home = Path(str(package.__file__)).parent
        for part in (home, home.with_name(f"{home.name}.libs")):
            if part.exists():
                (packages / part.name).symlink_to(part)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}:$PYTHONPATH" exec {sys.executable} -S "$@"\n')
    python.chmod(0o700)
    return python


@asynccontextmanager
async def _service(home: Path, command: Sequence[str]) -> AsyncIterator[SparkProcess]:
    """Run one of Spark's scripts in a session of its own; at the end kill it with all that it started."""
    log = _log_in(home)
    with log.open("wb") as file:
        process = await trio.lowlevel.open_process(
            [_spark_home() / "bin" / command[0], *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=file.fileno(),
            stderr=file.fileno(),
            env=_environment(home),
            cwd=home,
            start_new_session=True,
        )
    service = SparkProcess(process, log)
    try:
        yield service
    finally:
        service.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


def _log_in(home: Path) -> Path:
    home.mkdir(parents=True)
    return home / "log"


def _environment(home: Path) -> Mapping[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return inherited | {
        "PYSPARK_PYTHON": str(bare_python(home / "bare")),
        "SPARK_CONNECT_MODE": "0",
        "SPARK_DAEMON_JAVA_OPTS": f"-Djava.io.tmpdir={home} {_JAVA}",
        "SPARK_DAEMON_MEMORY": "1g",
        "SPARK_HOME": str(_spark_home()),
        "SPARK_LAUNCHER_OPTS": "-XX:-UsePerfData",
        "SPARK_LOCAL_DIRS": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TMPDIR": str(home),
    }


def _spark_home() -> Path:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
