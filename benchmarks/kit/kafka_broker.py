"""A broker of Apache Kafka in ZooKeeper mode, as a process with the options and logs of its distribution."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from tests.kafka import jars
from tests.kafka.real_brokers import listens
from transport.child_process import spawn
from transport.zookeeper_server import HOST, find_java, free_port

START_SECONDS: Final = 600
POLL_SECONDS: Final = 0.1
_KAFKA_RUN_CLASS: Final = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
"""The options that bin/kafka-run-class.sh sets."""

_LOGS: Final = {"server": "", "controller": "kafka.controller", "state-change": "state.change.logger"}
"""The loggers that have files of their own in Kafka's config/log4j.properties, by the name of the file."""


def require_jars() -> Path:
    """Return the folder of Kafka's jars, or end the process and say how to fetch them."""
    found = jars.fetched(jars.RELEASE)
    if found is None:
        sys.exit(f"Kafka's jars are missing: python -m tests.kafka.jars {jars.RELEASE} fetches them by Maven, 60 MB")
    return found


@define(eq=False)
class KafkaBroker:
    """A broker, which may be ended and started again with its data and its port."""

    id: int
    zookeeper: str
    directory: Path
    heap: str
    settings: Mapping[str, str] = field(factory=dict)
    port: int = field(factory=free_port)
    processes: list[subprocess.Popen[bytes]] = field(factory=list, init=False)
    """All of them since the first start."""

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process that was started last."""
        return self.processes[-1]

    def start(self) -> None:
        """Start its process."""
        self.directory.mkdir(exist_ok=True)
        own = {
            "broker.id": str(self.id),
            "zookeeper.connect": self.zookeeper,
            "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "log.dirs": str(self.directory / "data"),
            "auto.leader.rebalance.enable": "false",
            "inter.broker.protocol.version": "3.9",
            **self.settings,
        }
        properties, logging = self.directory / "server.properties", self.directory / "log4j.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in own.items()))
        logging.write_text("".join(_logging(self.directory)))
        options = [*_KAFKA_RUN_CLASS, f"-Xmx{self.heap}", f"-Xms{self.heap}", f"-Dlog4j.configuration=file:{logging}"]
        command = [find_java(), *options, "-cp", f"{require_jars()}/*", "kafka.Kafka", str(properties)]
        self.processes.append(spawn(command, self.directory / "output.log"))

    async def until_listening(self) -> None:
        """Wait until it listens, some seconds after it has registered. Raises RuntimeError if it ends instead."""
        with trio.fail_after(START_SECONDS):
            while not await listens(self.port):
                self.require_alive()
                await trio.sleep(POLL_SECONDS)

    def require_alive(self) -> None:
        """Raise RuntimeError, with the end of its log, if its process has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(f"broker {self.id} has ended: {self.log('server').read_text()[-2000:]}")

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.process.kill()
        self.process.wait()

    def log(self, name: str) -> Path:
        """Return one of its logs: server, controller or state-change."""
        return self.directory / f"{name}.log"

    def logged(self, text: str) -> list[int]:
        """Return the times of the lines in its server's log that contain a text, in microseconds since 1970."""
        with self.log("server").open() as lines:
            return [time_of(line) for line in lines if text in line]


def time_of(line: str) -> int:
    """Return the time of a line in a log, in microseconds since 1970."""
    seconds = time.mktime(time.strptime(line[1:20], "%Y-%m-%d %H:%M:%S"))
    return round(seconds) * 1_000_000 + int(line[21:24]) * 1000


def _logging(directory: Path) -> Iterator[str]:
    for name, logger in _LOGS.items():
        appender = f"log4j.appender.{name}"
        yield f"log4j.logger.{logger}=INFO, {name}\n" if logger else f"log4j.rootLogger=INFO, {name}\n"
        yield f"log4j.additivity.{logger}=false\n" if logger else ""
        yield f"{appender}=org.apache.log4j.FileAppender\n"
        yield f"{appender}.File={directory / f'{name}.log'}\n"
        yield f"{appender}.layout=org.apache.log4j.PatternLayout\n"
        yield f"{appender}.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
