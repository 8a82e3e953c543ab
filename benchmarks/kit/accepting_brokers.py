"""Brokers that accept every order, in a process of their own: Apache Kafka's, and ours."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

import trio
from attrs import define, frozen

from transport.child_process import spawn
from transport.kafka import messages as kafka
from transport.zookeeper_server import HOST, find_java

START_SECONDS: Final = 60
POLL_SECONDS: Final = 0.1
MICROSECONDS: Final = 1_000_000
_KAFKAS: Final = Path(__file__).with_name("AcceptingBrokers.java")
_OURS: Final = Path(__file__).with_name("sink.py")
_OPTIONS: Final = ("-Xmx1g", "-XX:+UseParallelGC", "-XX:ParallelGCThreads=1")


@frozen
class Orders:
    """The orders of one kind that brokers have taken since some time."""

    requests: int = 0
    partitions: int = 0
    size: int = 0
    answered: int = 0
    """The time of the last answer, in microseconds since 1970."""


@frozen
class Taken:
    """All orders that brokers have taken since some time."""

    leader_and_isr: Orders
    stop_replica: Orders
    update_metadata: Orders

    @property
    def answered(self) -> int:
        """The time of the last answer, in microseconds since 1970; 0 without any."""
        return max(self.leader_and_isr.answered, self.stop_replica.answered, self.update_metadata.answered)

    @property
    def requests(self) -> tuple[int, int, int]:
        """The numbers of requests, by kind."""
        return self.leader_and_isr.requests, self.stop_replica.requests, self.update_metadata.requests

    def __str__(self) -> str:
        kinds = {"LeaderAndIsr": self.leader_and_isr, "StopReplica": self.stop_replica}
        told = [f"{name} {of.requests} ({of.partitions:,} partitions)" for name, of in kinds.items()]
        metadata = self.update_metadata
        return ", ".join([*told, f"UpdateMetadata {metadata.requests} ({metadata.size:,} bytes)"])


@define
class AcceptingBrokers:
    """The running brokers."""

    ports: list[int]
    _control: trio.SocketStream
    _unread: bytes = b""

    async def taken(self, since: int) -> Taken:
        """Return the orders that arrived since then, in microseconds since 1970."""
        await self._control.send_all(f"since {since}\n".encode())
        while b"\n" not in self._unread:
            part = await self._control.receive_some()
            if not part:
                raise RuntimeError("the brokers ended")
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        sums = {int(api): Orders(*of) for api, of in json.loads(line).items()}
        kinds = (kafka.LeaderAndIsrRequest, kafka.StopReplicaRequest, kafka.UpdateMetadataRequest)
        return Taken(*(sums.get(kind.api_key, Orders()) for kind in kinds))

    async def let_join(self, controller_port: int) -> None:
        """Have the leaders let replicas join the ISR that are being added; 0 ends that."""
        await self._control.send_all(f"controller {controller_port}\n".encode())


def accepting_brokers(count: int, jars: Path, log: Path) -> AbstractAsyncContextManager[AcceptingBrokers]:
    """Run brokers of Kafka's until the end of the block. Java compiles the program, which needs a JDK."""
    return _running([find_java(), *_OPTIONS, "-cp", f"{jars}/*", str(_KAFKAS), str(count)], log)


def our_brokers(count: int, log: Path) -> AbstractAsyncContextManager[AcceptingBrokers]:
    """Run brokers of ours until the end of the block."""
    return _running([sys.executable, str(_OURS), str(count)], log)


@asynccontextmanager
async def _running(command: list[str], log: Path) -> AsyncIterator[AcceptingBrokers]:
    process = spawn(command, log)
    try:
        with trio.fail_after(START_SECONDS):
            while not (ports := _ports(process, log)):  # noqa: ASYNC110
                await trio.sleep(POLL_SECONDS)
        control, *ports = ports
        async with await trio.open_tcp_stream(HOST, control) as stream:
            yield AcceptingBrokers(ports, stream)
    finally:
        process.kill()
        process.wait()


def _ports(process: subprocess.Popen[bytes], log: Path) -> list[int]:
    """Return the ports in the first line of the log; none before it is there."""
    text = log.read_text()
    if process.poll() is not None:
        raise RuntimeError(f"the brokers ended: {text}")
    first, end, _ = text.partition("\n")
    return list(map(int, first.split())) if end else []
