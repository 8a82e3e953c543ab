"""Real brokers of Apache Kafka in ZooKeeper mode, as processes on ports of their own."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from tests.kafka.class_archives import ClassArchive
from tests.kit.ports import lasting_port
from transport.child_process import spawn
from transport.zookeeper_server import HOST, find_java

START_SECONDS: Final = 120
STOP_SECONDS: Final = 60
_POLL_SECONDS: Final = 0.1

_LOGGING: Final = """\
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%d{HH:mm:ss,SSS} %p %m (%c{1})%n
"""

_SETTINGS: Final = {
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "zookeeper.session.timeout.ms": "10000",
}


@define(eq=False)
class RealBroker:
    """A broker, which may be stopped and started again with its data and its ports."""

    id: int
    jars: Path
    zookeeper: str
    directory: Path
    settings: Mapping[str, str] = field(factory=dict)
    port: int = field(factory=lasting_port)
    heap: str = "256m"
    processes: list[subprocess.Popen[bytes]] = field(factory=list, init=False)
    """All of them since the first start."""
    _recorded: ClassArchive | None = field(default=None, init=False)
    """The archive that its process writes when it ends in order."""

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process that was started last."""
        return self.processes[-1]

    @property
    def log(self) -> Path:
        """The text that the broker has logged."""
        return self.directory / "broker.log"

    @property
    def log_dirs(self) -> tuple[Path, Path]:
        """The directories of its partitions."""
        return self.directory / "data-1", self.directory / "data-2"

    def logs(self, topic: str) -> list[Path]:
        """Return what it has of the partitions of a topic."""
        return [path for directory in self.log_dirs for path in directory.glob(f"{topic}-*")]

    async def start(self, *, records: bool = False) -> None:
        """Start it, and return when it listens. It `records` its classes for other brokers if `end` ends it.

        Raises RuntimeError, with the end of its log, if it ends before it listens or takes too long.
        """
        own = {
            "broker.id": str(self.id),
            "zookeeper.connect": self.zookeeper,
            "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "log.dirs": ",".join(map(str, self.log_dirs)),
        }
        lines = [f"{name}={value}\n" for name, value in (_SETTINGS | own | dict(self.settings)).items()]
        (self.directory / "server.properties").write_text("".join(lines))
        (self.directory / "log4j.properties").write_text(_LOGGING)
        archive = ClassArchive.of(self.jars)
        options = archive.options()
        if records and (recording := archive.recording()):
            options, self._recorded = recording, archive
        self.processes.append(spawn(_command(self.jars, self.directory, self.heap, options), self.log))
        with trio.move_on_after(START_SECONDS):
            await _until_listening(self.process, self.port)
        if self.process.poll() is not None or not await listens(self.port):
            raise RuntimeError(f"broker {self.id} does not listen: {self.log.read_text()[-2000:]}")

    def starts(self) -> int:
        """Return how many of its processes have come as far as to know their cluster; they register next."""
        return self.log.read_text().count("Cluster ID = ")

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        kill(self.process)

    async def terminate(self) -> int | None:
        """Stop it with SIGTERM, by SIGKILL if it takes too long, and return its exit code; None for the latter."""
        process = self.process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with trio.move_on_after(STOP_SECONDS):
                await trio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
        if process.poll() is None:
            self.kill()
            return None
        return process.returncode

    async def end(self) -> None:
        """End all of its processes; the last one in order if it records its classes."""
        if self._recorded is not None:
            self._recorded.end(await self.terminate())
        for process in self.processes:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with SIGKILL, and wait for its end."""
    process.kill()
    process.wait()


@asynccontextmanager
async def real_broker(
    jars: Path,
    zookeeper: str,
    broker_id: int,
    directory: Path,
    settings: Mapping[str, str] | None = None,
    port: int | None = None,
) -> AsyncIterator[RealBroker]:
    """Run a broker of Kafka's in a folder until the end of the block. It listens when the block begins."""
    broker = RealBroker(broker_id, jars, zookeeper, directory, settings or {}, port or lasting_port())
    try:
        await broker.start(records=True)
        yield broker
    finally:
        with trio.CancelScope(shield=True):
            await broker.terminate()
            await broker.end()


def _command(jars: Path, directory: Path, heap: str, more: Sequence[str]) -> list[str]:
    options = [*more, f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]
    logging = f"-Dlog4j.configuration=file:{directory}/log4j.properties"
    settings = str(directory / "server.properties")
    return [find_java(), *options, logging, "-cp", f"{jars}/*", "kafka.Kafka", settings]


async def _until_listening(process: subprocess.Popen[bytes], port: int) -> None:
    # A broker registers some seconds before it listens.
    while process.poll() is None and not await listens(port):
        await trio.sleep(_POLL_SECONDS)


async def listens(port: int) -> bool:
    """Return whether somebody else listens on a port of this host."""
    try:
        stream = await trio.open_tcp_stream(HOST, port)
    except OSError:
        return False
    # The kernel may connect a socket to itself.
    is_own = stream.socket.getsockname()[1] == port
    await stream.aclose()
    return not is_own
