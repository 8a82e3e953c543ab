"""A controller of Kafka's own and one of Klamm's, each with accepting brokers below a chroot of its own.

Klamm's controls brokers of Kafka's as well, or brokers of its own, on Klamm's wire.
"""

from __future__ import annotations

import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from benchmarks.kit import cluster
from benchmarks.kit.accepting_brokers import AcceptingBrokers, accepting_brokers, our_brokers
from benchmarks.kit.cluster import Shape, commit_all, create_topics, multis, state_znodes, topic_znodes
from benchmarks.kit.kafka_broker import KafkaBroker, require_jars
from benchmarks.kit.memory import processor_seconds_of
from benchmarks.kit.requests import moves_to, shutdown_of
from benchmarks.kit.samples import KAFKA, KLAMM, now
from controller.admin import handover
from tests.kit import kafka_registrations
from transport.child_process import spawn
from transport.kafka import messages as kafka
from transport.kafka.client import KafkaConnection
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.messages.alter_partition_reassignments_request import ReassignablePartition, ReassignableTopic
from transport.messages import Request
from transport.metadata import Listener, TopicPartition
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import (
    ANY_VERSION,
    Create,
    Delete,
    MetadataStore,
    Set,
    Znode,
    children_of,
    ensure_paths,
)
from transport.store.zookeeper import open_zookeeper
from transport.wire import open_connection
from transport.zookeeper_server import HOST, free_port

EMPTY_BROKER: Final = 100
"""The id of the broker without partitions in which Kafka's controller lives, and of one on the other side."""

OURS: Final = 9001
SESSION_MS: Final = 10_000
PATIENCE_SECONDS: Final = 3600
POLL_SECONDS: Final = 0.02
_PATIENCE_MS: Final = PATIENCE_SECONDS * 1000
_LISTENER: Final = "PLAINTEXT"

Targets = Mapping[TopicPartition, tuple[int, ...]]
"""The new replicas of partitions."""


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

    # --- requests to it -------------------------------------------------------------------------------------------

    async def shut_broker_down(self, broker_id: int) -> int:
        """Ask for a controlled shutdown, and return when that was, in microseconds since 1970."""
        epoch = (await self.require(paths.broker(broker_id))).stat.czxid
        async with self._connected() as connection:
            version = connection.version_of(kafka.ControlledShutdownRequest)
            request, begun = kafka.ControlledShutdownRequest(broker_id, epoch), now()
            answer = await connection.send(request, kafka.ControlledShutdownResponse, version, timeout=PATIENCE_SECONDS)
        if answer.error_code or answer.remaining_partitions:
            raise RuntimeError(f"the controlled shutdown failed: {str(answer)[:200]}")
        return begun

    async def move(self, targets: Targets) -> int:
        """Ask for a reassignment, and return when that was, in microseconds since 1970."""
        moves: dict[str, list[ReassignablePartition]] = {}
        for tp, replicas in targets.items():
            moves.setdefault(tp.topic, []).append(ReassignablePartition(tp.partition, replicas))
        topics = [ReassignableTopic(name, tuple(partitions)) for name, partitions in moves.items()]
        async with self._connected() as connection:
            version = connection.version_of(kafka.AlterPartitionReassignmentsRequest)
            request = kafka.AlterPartitionReassignmentsRequest(_PATIENCE_MS, topics=tuple(topics))
            begun = now()
            answer = await connection.send(
                request, kafka.AlterPartitionReassignmentsResponse, version, timeout=PATIENCE_SECONDS
            )
        refused = [one for topic in answer.responses for one in topic.partitions if one.error_code]
        if answer.error_code or refused:
            raise RuntimeError(f"the reassignment was refused: {answer.error_code}, {refused[:1]}")
        return begun

    def _connected(self) -> AbstractAsyncContextManager[KafkaConnection]:
        return open_kafka_connection(TcpNetwork(), HOST, self.port, client_id="benchmark")

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
        await ensure_paths(self.store, [paths.BROKER_IDS, paths.TOPICS, paths.TOPIC_CONFIGS, paths.DELETE_TOPICS])
        await self._create_configs(self.shape)
        await create_topics(self.store, self.shape)
        for broker_id in range(self.shape.brokers):
            await self.register(broker_id)

    async def register(self, broker_id: int) -> None:
        """Register a broker."""
        await kafka_registrations.register(self.store, broker_id, Listener(_LISTENER, HOST, self.port_of(broker_id)))

    def port_of(self, broker_id: int) -> int:
        """Return the port of a broker."""
        return self.brokers.ports[min(broker_id, self.shape.brokers)]

    async def lose(self, broker_id: int) -> None:
        """Delete the registration of a broker."""
        await self.store.multi([Delete(paths.broker(broker_id))])

    async def create_more(self, more: Shape) -> int:
        """Create topics for which the controller is to create the states, as Kafka's tools do; return when."""
        await self._create_configs(more)
        multis_of_topics = multis([Create(path, data) for path, data in topic_znodes(more)], chunk=more.topics)
        begun = now()
        for multi in multis_of_topics:
            await self.store.multi(multi)
        return begun

    async def delete(self, more: Shape) -> int:
        """Mark topics for deletion all at once; return when."""
        begun = now()
        await self.store.multi([Create(paths.delete_topic(name)) for name in more.names()])
        return begun

    async def until_deleted(self) -> int:
        """Wait until no topic is left but the first ones, and no mark; return when that was."""
        while await self.children(paths.DELETE_TOPICS) or await self.topics() != self.shape.names():  # noqa: ASYNC110
            await trio.sleep(POLL_SECONDS)
        return now()

    async def topics(self) -> list[str]:
        """List the topics that have a znode or a configuration."""
        return sorted({*await self.children(paths.TOPICS), *await self.children(paths.TOPIC_CONFIGS)})

    async def _create_configs(self, shape: Shape) -> None:
        empty = formats.encode_config({})
        await commit_all(self.store, [Create(paths.topic_config(name), empty) for name in shape.names()])

    async def children(self, path: str) -> list[str]:
        """List the children of a znode."""
        return await children_of(self.store, path)

    async def read(self, names: Sequence[str]) -> dict[str, Znode]:
        """Return those of some znodes that are there, by path."""
        found = zip(names, await self.store.read(names), strict=True)
        return {path: znode for path, znode in found if znode is not None}

    async def states(self) -> dict[str, Znode]:
        """Return the state of each partition, by path."""
        return await self.read([path for path, _ in state_znodes(self.shape)])

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
        await kafka_registrations.begin_cluster(self.store)
        await self.register(EMPTY_BROKER)

    async def vacate(self) -> None:
        """Delete `/controller`, which is a release, and order the controller to take office again."""
        await self.store.multi([Delete(paths.CONTROLLER)])
        await self.require(paths.RELEASED)
        await handover.take_over(self.store, now() // 1000, PATIENCE_SECONDS)

    async def is_session_left(self) -> bool:
        """Return whether the lock of the office is held."""
        return await self.exists(paths.OFFICE_LOCK)


@define(eq=False, kw_only=True)
class OwnWireSide(KlammSide):
    """Klamm's controller with brokers of its own, on Klamm's wire."""

    def start(self) -> None:
        """Start the controller."""
        command = [sys.executable, "-m", "klamm", "controller", "run", "--id", str(OURS), "--port", str(self.port)]
        command += ["--zookeeper", self.zookeeper, "--session-timeout", str(SESSION_MS)]
        self._processes.append(
            spawn([*command, "--no-auto-leader-rebalance-enable"], self.directory / "controller.log")
        )

    async def vacate(self) -> None:
        """Delete `/controller`, after which the same process is elected again."""
        await self.store.multi([Delete(paths.CONTROLLER)])

    async def is_session_left(self) -> bool:
        """Return whether the controller is in office."""
        return await self.exists(paths.CONTROLLER)

    async def register(self, broker_id: int) -> None:
        """Register a broker."""
        await cluster.register(self.store, broker_id, self.port_of(broker_id))

    async def shut_broker_down(self, broker_id: int) -> int:
        """Ask for a controlled shutdown, and return when that was, in microseconds since 1970."""
        return await self._ask(await shutdown_of(self.store, broker_id))

    async def move(self, targets: Targets) -> int:
        """Ask for a reassignment, and return when that was, in microseconds since 1970."""
        return await self._ask(moves_to(targets))

    async def _ask(self, request: Request[object]) -> int:
        async with open_connection(TcpNetwork(), HOST, self.port, client_id="benchmark") as connection:
            begun = now()
            await connection.call(request, timeout=PATIENCE_SECONDS)
        return begun


@asynccontextmanager
async def both_sides(
    zookeeper: str, directory: Path, shape: Shape, heap: str, *, own_wire: bool
) -> AsyncIterator[tuple[Side, Side]]:
    """Create both clusters, without controllers. These are killed at the end of the block."""
    folders = directory / "kafka", directory / "klamm"
    for folder in folders:
        folder.mkdir()
    logs = [folder / "brokers.log" for folder in folders]
    theirs = accepting_brokers(shape.brokers, require_jars(), logs[0])
    count = shape.brokers + 1
    ours = our_brokers(count, logs[1]) if own_wire else accepting_brokers(count, require_jars(), logs[1])
    async with (
        _one_side(partial(KafkaSide, heap=heap), zookeeper, folders[0], shape, theirs) as kafka_side,
        _one_side(OwnWireSide if own_wire else KlammSide, zookeeper, folders[1], shape, ours) as klamm_side,
    ):
        yield kafka_side, klamm_side


@asynccontextmanager
async def _one_side(
    make: Callable[..., Side],
    zookeeper: str,
    directory: Path,
    shape: Shape,
    running: AbstractAsyncContextManager[AcceptingBrokers],
) -> AsyncIterator[Side]:
    chroot = f"{zookeeper}/{directory.name}"
    async with open_zookeeper(chroot, session_timeout_ms=60_000) as store, running as brokers:
        side = make(zookeeper=chroot, store=store, shape=shape, brokers=brokers, directory=directory)
        await brokers.let_join(side.port)
        await side.create()
        try:
            yield side
        finally:
            side.end()
