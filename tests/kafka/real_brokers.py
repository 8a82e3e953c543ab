"""Real brokers of Apache Kafka in ZooKeeper mode, as processes on ports of their own."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio
from attrs import frozen

from transport.child_process import spawn
from transport.zookeeper_server import HOST, find_java, free_port

START_SECONDS: Final = 60
STOP_SECONDS: Final = 30
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


@frozen
class RealBroker:
    """A running broker, and what it has logged."""

    id: int
    port: int
    process: subprocess.Popen[bytes]
    log: Path


@asynccontextmanager
async def real_broker(
    jars: Path, zookeeper: str, broker_id: int, directory: Path, settings: Mapping[str, str] | None = None
) -> AsyncIterator[RealBroker]:
    """Run a broker of Kafka's in a folder until the end of the block. It listens when the block begins.

    Raises RuntimeError, with the end of its log, if it ends before it listens or takes too long.
    """
    port, log = free_port(), directory / "broker.log"
    own = {
        "broker.id": str(broker_id),
        "zookeeper.connect": zookeeper,
        "listeners": f"PLAINTEXT://{HOST}:{port}",
        "log.dirs": str(directory / "data"),
    }
    lines = [f"{name}={value}\n" for name, value in (_SETTINGS | own | dict(settings or {})).items()]
    (directory / "server.properties").write_text("".join(lines))
    (directory / "log4j.properties").write_text(_LOGGING)
    process = spawn(_command(jars, directory), log)
    try:
        with trio.move_on_after(START_SECONDS):
            await _until_listening(process, port)
        if process.poll() is not None or not await _listens(port):
            raise RuntimeError(f"broker {broker_id} does not listen: {log.read_text()[-2000:]}")
        yield RealBroker(broker_id, port, process, log)
    finally:
        with trio.CancelScope(shield=True):
            await _end(process)


def _command(jars: Path, directory: Path) -> list[str]:
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]
    logging = f"-Dlog4j.configuration=file:{directory}/log4j.properties"
    settings = str(directory / "server.properties")
    return [find_java(), *options, logging, "-cp", f"{jars}/*", "kafka.Kafka", settings]


async def _until_listening(process: subprocess.Popen[bytes], port: int) -> None:
    # A broker registers some seconds before it listens.
    while process.poll() is None and not await _listens(port):
        await trio.sleep(_POLL_SECONDS)


async def _listens(port: int) -> bool:
    try:
        stream = await trio.open_tcp_stream(HOST, port)
    except OSError:
        return False
    await stream.aclose()
    return True


async def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with trio.move_on_after(STOP_SECONDS):
            await trio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
    if process.poll() is None:
        process.kill()
        process.wait()
