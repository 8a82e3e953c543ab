"""A cluster of real brokers of Apache Kafka under controllers of ours, all of them processes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio
from attrs import frozen

from controller.admin.client import AdminClient, open_klamm_admin
from tests.kafka import jars
from tests.kafka.cluster_security import ADMIN, ClusterSecurity
from tests.kafka.real_brokers import RealBroker, kill
from tests.kafka.real_controllers import LISTENERS, RUN, SESSION_MS, RealControllers
from tests.kafka.releases import brokers_of
from tests.kafka.told_metadata import told_metadata
from tests.kafka.traffic import Servers
from tests.kit.ports import free_ports
from transport.errors import ErrorCode
from transport.messages import NewTopic, PartitionState, ReassignablePartition
from transport.metadata import TopicPartition
from transport.network import Network, TcpNetwork
from transport.store.zookeeper import open_zookeeper
from transport.zookeeper_server import HOST

PATIENCE_SECONDS: Final = 120
POLL_SECONDS: Final = 0.1
FIRST: Final = 1001
"""The id of the controller that is there before the brokers."""

OPEN: Final = {"listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT"}
SETTINGS: Final = {
    "inter.broker.listener.name": "INTERNAL",
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "replica.lag.time.max.ms": "5000",
    "log.segment.delete.delay.ms": "500",
    "controlled.shutdown.retry.backoff.ms": "500",
}


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what happens in other processes."""
    with trio.fail_after(PATIENCE_SECONDS):
        while not await condition():
            await trio.sleep(POLL_SECONDS)


@frozen
class RealCluster:
    """The parts of a running cluster."""

    zookeeper: str
    directory: Path
    admin: AdminClient
    brokers: dict[int, RealBroker]
    clients: dict[int, str]
    """The addresses of the brokers for clients."""

    controllers: RealControllers
    security: ClusterSecurity | None = None

    @property
    def bootstrap(self) -> Servers:
        """The brokers for clients."""
        return self.servers(*self.clients)

    @property
    def network(self) -> Network:
        """The network of an administrator, who may do everything."""
        return TcpNetwork() if self.security is None else self.security.network_of(ADMIN)

    def servers(self, *broker_ids: int) -> Servers:
        """Return these brokers for clients."""
        addresses = ",".join(self.clients[id_] for id_ in broker_ids)
        return addresses if self.security is None else {"bootstrap.servers": addresses, **self.security.of_client()}

    async def hand_over(self, command: str) -> None:
        """Run `klamm controller take-over` or `release`, which end when the office has changed hands."""
        words = [sys.executable, "-m", "klamm", "controller", command, "--zookeeper", self.zookeeper]
        await trio.run_process(words)

    async def create(
        self, topic: str, *assignments: Sequence[int], partitions: int = 0, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic with these replicas, or with three of each partition, and wait for its leaders."""
        replicas, own = tuple(map(tuple, assignments)), tuple((configs or {}).items())
        wanted = NewTopic(topic, -1, -1, replicas, own) if replicas else NewTopic(topic, partitions, 3, (), own)
        [created] = (await self.admin.create_topics([wanted])).topics
        assert created.error is ErrorCode.NONE
        await self.until_in_sync(topic, count=partitions or len(replicas))

    async def states(self, topic: str) -> list[PartitionState]:
        """Return the partitions of a topic, as the controller knows them."""
        return list((await self.admin.read_metadata([topic])).partitions)

    async def state(self, topic: str) -> PartitionState:
        """Return the first partition of a topic."""
        return next(state for state in await self.states(topic) if state.partition == 0)

    async def until_in_sync(self, topic: str, *, count: int = 1, without: int | None = None) -> None:
        """Wait until each partition has a leader, and all its replicas are in the ISR, or all but that of a broker."""

        async def are_in_sync() -> bool:
            states = await self.states(topic)
            isrs = [(set(state.isr), set(state.replicas) - {without}, state.leader) for state in states]
            return len(states) >= count and all(isr == wanted and leader in isr for isr, wanted, leader in isrs)

        await until(are_in_sync)

    async def until_registered(self, *broker_ids: int) -> None:
        """Wait until just these brokers are alive for the controller."""

        async def are_alive() -> bool:
            return {broker.id for broker in (await self.admin.read_metadata([])).brokers} == set(broker_ids)

        await until(are_alive)

    async def until_all_know_all(self) -> None:
        """Wait until each broker has heard from a controller that all are alive.

        Before that it places no replicas on them, and gives clients no addresses: one whose first answer had none has
        asked for no producer id within two minutes.
        """

        async def do_know() -> bool:
            known = [await told_metadata(self.network, address) for address in self.clients.values()]
            return all({node.node_id for node in told.brokers} >= self.brokers.keys() for told in known)

        await until(do_know)

    async def move(self, topic: str, *replicas: int) -> None:
        """Move the first partition of a topic, and wait until that is complete."""
        await self.begin_move(topic, *replicas)
        await self.until_moved(topic)

    async def begin_move(self, topic: str, *replicas: int) -> None:
        """Ask the controller to move the first partition of a topic."""
        wanted = ReassignablePartition(topic, 0, replicas)
        [begun] = (await self.admin.alter_partition_reassignments([wanted])).partitions
        assert begun.error is ErrorCode.NONE

    async def until_moved(self, topic: str) -> None:
        """Wait until the first partition of a topic is not being moved any more."""

        async def is_complete() -> bool:
            return not await self.admin.list_partition_reassignments([TopicPartition(topic, 0)])

        await until(is_complete)

    async def delete(self, topic: str) -> None:
        """Delete a topic, and wait until it is gone."""
        [deleted] = (await self.admin.delete_topics([topic])).topics
        assert deleted.error is ErrorCode.NONE

        async def is_gone() -> bool:
            return not await self.states(topic)

        await until(is_gone)

    async def until_without_logs(self, topic: str, *broker_ids: int) -> None:
        """Wait until brokers have no data of a topic any more."""

        async def are_gone() -> bool:
            await trio.lowlevel.checkpoint()
            return not [path for id_ in broker_ids for path in self.brokers[id_].logs(topic)]

        await until(are_gone)


@frozen
class Starting:
    """The start of the processes: the program of the first controller, and the timeout of all sessions.

    If the controllers are shown, clients see them, too.
    """

    program: Sequence[str] = RUN
    session_ms: int | None = None
    are_shown: bool = False

    def of_broker(self) -> Mapping[str, str]:
        """Return the settings of a broker."""
        return {"zookeeper.session.timeout.ms": str(self.session_ms)} if self.session_ms else {}


AS_USUAL: Final = Starting()


@asynccontextmanager
async def real_cluster(
    zookeeper: str,
    directory: Path,
    *,
    release: str = jars.RELEASE,
    broker_ids: Sequence[int] = (1, 2, 3),
    is_first: bool = True,
    security: ClusterSecurity | None = None,
    starting: Starting = AS_USUAL,
) -> AsyncIterator[RealCluster]:
    """Run brokers and a controller below a chroot that does not exist yet.

    The controller `is_first`, and in office, or else starts after the brokers and stands by. `release` may be the name
    of any kind of cluster.
    """
    ports = iter(free_ports(2 * len(broker_ids)))
    clients = {id_: next(ports) for id_ in broker_ids}
    kind = brokers_of(release)
    secured = OPEN if security is None else security.of_broker(*LISTENERS)
    settings = {**SETTINGS, **secured, **kind.settings, **starting.of_broker()}
    brokers = {
        id_: real_broker_of(of, zookeeper, id_, directory, (next(ports), clients[id_]), settings)
        for id_, of in zip(broker_ids, kind.first(len(broker_ids)), strict=True)
    }
    addresses = {id_: f"{HOST}:{port}" for id_, port in clients.items()}
    options = () if security is None else ("--security-config", str(security.of_controller()))
    session_ms = starting.session_ms or SESSION_MS
    controllers = RealControllers(zookeeper, directory, session_ms, options, are_shown=starting.are_shown)
    network = None if security is None else security.network_of(ADMIN)
    try:
        if security is not None:
            async with open_zookeeper(zookeeper) as store:
                await security.let_in(store)
        if is_first:
            await _begin(controllers, starting.program)
        async with trio.open_nursery() as nursery:
            for broker in brokers.values():
                nursery.start_soon(broker.start)
        if not is_first:
            await _begin(controllers, starting.program)
        async with open_klamm_admin(zookeeper_connect=zookeeper, network=network, timeout=PATIENCE_SECONDS) as admin:
            cluster = RealCluster(zookeeper, directory, admin, brokers, addresses, controllers, security)
            if is_first:
                await cluster.until_registered(*broker_ids)
                await cluster.until_all_know_all()
            yield cluster
    finally:
        for processes in (*(broker.processes for broker in brokers.values()), controllers.processes.values()):
            for process in processes:
                kill(process)


async def _begin(controllers: RealControllers, program: Sequence[str]) -> None:
    """Start the first controller, and wait until it listens."""
    controllers.start(FIRST, program)

    async def is_listening() -> bool:
        await trio.lowlevel.checkpoint()
        return controllers.listens(FIRST)

    await until(is_listening)


def real_broker_of(
    release: str, zookeeper: str, broker_id: int, directory: Path, ports: tuple[int, int], settings: Mapping[str, str]
) -> RealBroker:
    folder = directory / f"broker-{broker_id}"
    folder.mkdir()
    addresses = ",".join(f"{name}://{HOST}:{port}" for name, port in zip(LISTENERS, ports, strict=True))
    own = {**settings, "listeners": addresses}
    return RealBroker(broker_id, jars.folder(release), zookeeper, folder, own, ports[0])
