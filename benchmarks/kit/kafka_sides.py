"""A controller of Kafka's own and one of Klamm's, each with accepting brokers below a chroot of its own."""

from __future__ import annotations

import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from benchmarks.kit.accepting_brokers import AcceptingBrokers, accepting_brokers
from benchmarks.kit.cluster import Shape, commit_all, create_topics, state_znodes
from benchmarks.kit.kafka_broker import KafkaBroker, require_jars
from benchmarks.kit.memory import processor_seconds_of
from benchmarks.kit.samples import KAFKA, KLAMM, now
from controller.admin import handover
from tests.kit import kafka_registrations
from transport.child_process import spawn
from transport.kafka import messages as kafka
from transport.kafka.connecting import open_kafka_connection
from transport.metadata import Listener
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import ANY_VERSION, Create, Delete, MetadataStore, Set, Znode, ensure_paths
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import HOST, free_port

EMPTY_BROKER: Final = 100
"""The id of the broker without partitions in which Kafka's controller lives, and of one on the other side."""

OURS: Final = 9001
SESSION_MS: Final = 10_000
PATIENCE_SECONDS: Final = 3600
POLL_SECONDS: Final = 0.02
_LISTENER: Final = "PLAINTEXT"


@define(eq=False, kw_only=True)
class Side(ABC):
    """One of the two. Its brokers are registered by the session of its store."""

    zookeeper: str
    store: MetadataStore
    shape: Shape
    brokers: AcceptingBrokers
    directory: Path
    port: int = field(factory=free_port)

    name = ""

    # --- its controller -------------------------------------------------------------------------------------------

    @abstractmethod
    def start(self) -> None:
        """Start the controller's process."""

    @property
    @abstractmethod
    def processes(self) -> list[subprocess.Popen[bytes]]:
        """The controller's processes since the first start."""

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process that was started last."""
        return self.processes[-1]

    def end(self) -> None:
        """Kill what is left of the controller."""
        for process in self.processes:
            process.kill()
            process.wait()

    @abstractmethod
    async def vacate(self) -> None:
        """Delete `/controller`, and let the same process be elected again."""

    async def kill(self) -> None:
        """Kill the controller's process with SIGKILL, and wait until its session has expired."""
        self.end()
        while await self.is_session_left():  # noqa: ASYNC110 - it ends in another process
            await trio.sleep(POLL_SECONDS)

    @abstractmethod
    async def is_session_left(self) -> bool:
        """Return whether the controller's session is alive."""

    @property
    def processor_seconds(self) -> float:
        """The processor time of the controller's process. Raises RuntimeError if it has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name}'s controller has ended: see {self.directory}")
        return processor_seconds_of(self.process.pid)

    async def shut_broker_down(self, broker_id: int) -> int:
        """Ask for a controlled shutdown, and return when that was, in microseconds since 1970."""
        epoch = (await self.require(paths.broker(broker_id))).stat.czxid
        async with open_kafka_connection(TcpNetwork(), HOST, self.port, client_id="benchmark") as connection:
            version = connection.version_of(kafka.ControlledShutdownRequest)
            request, begun = kafka.ControlledShutdownRequest(broker_id, epoch), now()
            answer = await connection.send(request, kafka.ControlledShutdownResponse, version, timeout=PATIENCE_SECONDS)
        if answer.error_code or answer.remaining_partitions:
            raise RuntimeError(f"the controlled shutdown failed: {str(answer)[:200]}")
        return begun

    # --- its znodes -----------------------------------------------------------------------------------------------

    async def require(self, path: str) -> Znode:
        """Return a znode, once it is there."""
        while True:
            [znode] = await self.store.read([path])
            if znode is not None:
                return znode
            await trio.sleep(POLL_SECONDS)

    async def create(self) -> None:
        """Create the topics, and register the brokers."""
        await ensure_paths(self.store, [paths.BROKER_IDS, paths.TOPICS, paths.TOPIC_CONFIGS])
        names = self.shape.names()
        await commit_all(self.store, [Create(paths.topic_config(name), formats.encode_config({})) for name in names])
        await create_topics(self.store, self.shape)
        for broker_id in range(self.shape.brokers):
            await self.register(broker_id)

    async def register(self, broker_id: int) -> None:
        """Register a broker."""
        port = self.brokers.ports[min(broker_id, self.shape.brokers)]
        await kafka_registrations.register(self.store, broker_id, Listener(_LISTENER, HOST, port))

    async def lose(self, broker_id: int) -> None:
        """Delete the registration of a broker."""
        await self.store.multi([Delete(paths.broker(broker_id))])

    async def states(self) -> dict[str, Znode]:
        """Return the state of each partition, by path."""
        names = [path for path, _ in state_znodes(self.shape)]
        found = zip(names, await self.store.read(names), strict=True)
        return {path: znode for path, znode in found if znode is not None}

    async def restore(self, broker_id: int) -> None:
        """Write all states as they were at first, and register a broker anew."""
        there, wanted = await self.states(), dict(state_znodes(self.shape))
        changed = [path for path, data in wanted.items() if there[path].data != data]
        await commit_all(self.store, [Set(path, wanted[path], ANY_VERSION) for path in changed])
        if await self.exists(paths.broker(broker_id)):
            await self.lose(broker_id)
        await self.register(broker_id)

    async def exists(self, path: str) -> bool:
        """Return whether a znode exists."""
        [znode] = await self.store.read([path])
        return znode is not None


@define(eq=False, kw_only=True)
class KafkaSide(Side):
    """Kafka's own controller, in a broker without partitions."""

    heap: str
    broker: KafkaBroker = field(init=False)

    name = KAFKA

    def __attrs_post_init__(self) -> None:
        settings = {"zookeeper.session.timeout.ms": str(SESSION_MS)}
        folder = self.directory / "broker"
        self.broker = KafkaBroker(EMPTY_BROKER, self.zookeeper, folder, self.heap, settings, self.port)

    @property
    def processes(self) -> list[subprocess.Popen[bytes]]:
        """The broker's processes since the first start."""
        return self.broker.processes

    def start(self) -> None:
        """Start the broker."""
        self.broker.start()

    async def vacate(self) -> None:
        """Delete `/controller`, after which the broker is elected again."""
        await self.store.multi([Delete(paths.CONTROLLER)])

    async def is_session_left(self) -> bool:
        """Return whether the broker is registered."""
        return await self.exists(paths.broker(EMPTY_BROKER))


@define(eq=False, kw_only=True)
class KlammSide(Side):
    """Klamm's controller. An accepting broker stands for the one in which Kafka's lives."""

    _processes: list[subprocess.Popen[bytes]] = field(factory=list, init=False)

    name = KLAMM

    @property
    def processes(self) -> list[subprocess.Popen[bytes]]:
        """The controller's processes since the first start."""
        return self._processes

    def start(self) -> None:
        """Start the controller."""
        command = [sys.executable, "-m", "klamm", "controller", "run", "--kafka", "--id", str(OURS)]
        # These brokers do not tell their protocol.
        command += ["--inter-broker-protocol-version", "3.9"]
        command += ["--zookeeper", self.zookeeper, "--session-timeout", str(SESSION_MS)]
        command += ["--listeners", f"{_LISTENER}://{HOST}:{self.port}", "--no-auto-leader-rebalance-enable"]
        self._processes.append(spawn(command, self.directory / "controller.log"))

    async def create(self) -> None:
        """Create the topics, and register the brokers."""
        await Side.create(self)
        await self.register(EMPTY_BROKER)

    async def vacate(self) -> None:
        """Delete `/controller`, which is a release, and order the controller to take office again."""
        await self.store.multi([Delete(paths.CONTROLLER)])
        await self.require(paths.RELEASED)
        await handover.take_over(self.store, now() // 1000, PATIENCE_SECONDS)

    async def is_session_left(self) -> bool:
        """Return whether the lock of the office is held."""
        return await self.exists(paths.OFFICE_LOCK)


@asynccontextmanager
async def both_sides(zookeeper: str, directory: Path, shape: Shape, heap: str) -> AsyncIterator[tuple[Side, Side]]:
    """Create both clusters, without controllers. These are killed at the end of the block."""
    folders = directory / "kafka", directory / "klamm"
    for folder in folders:
        folder.mkdir()
    async with (
        _one_side(partial(KafkaSide, heap=heap), zookeeper, folders[0], shape, 0) as theirs,
        _one_side(KlammSide, zookeeper, folders[1], shape, 1) as ours,
    ):
        yield theirs, ours


@asynccontextmanager
async def _one_side(
    make: partial[KafkaSide] | type[KlammSide], zookeeper: str, directory: Path, shape: Shape, more: int
) -> AsyncIterator[Side]:
    chroot, log = f"{zookeeper}/{directory.name}", directory / "brokers.log"
    async with (
        open_zookeeper(chroot, session_timeout_ms=60_000) as store,
        accepting_brokers(shape.brokers + more, require_jars(), log) as brokers,
    ):
        side = make(zookeeper=chroot, store=store, shape=shape, brokers=brokers, directory=directory)
        await side.create()
        try:
            yield side
        finally:
            side.end()
