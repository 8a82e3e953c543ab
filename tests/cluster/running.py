"""A cluster of processes on a real ZooKeeper, with its administrator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Self

from attrs import define, field

from controller.admin.client import AdminClient
from klamm.cli.demo.clusters import CONTROLLERS
from klamm.cli.demo.load import DemoLoad
from klamm.cli.demo.process_cluster import ProcessCluster, stopping
from klamm.cli.demo.scenario import ORDERS
from tests.cli.shell import run_klamm, without_cluster
from tests.cluster.waiting import PATIENCE_SECONDS, until, until_controller, until_live
from transport.errors import ErrorCode
from transport.messages import NewTopic, PartitionError, PartitionState, ReassignablePartition
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import Znode
from transport.store.security import security_of_environment
from transport.store.zookeeper import open_zookeeper

FIRST, SECOND = CONTROLLERS
CONTROLLER: Final = ("klamm", "controller", "run")


@define
class RealCluster(ProcessCluster):
    """Controllers and brokers; what is asked of a partition is asked of `orders-0` unless another one is named."""

    admin: AdminClient = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.admin = AdminClient(TcpNetwork(), (), self.store, PATIENCE_SECONDS)

    @classmethod
    @asynccontextmanager
    async def running(
        cls, address: str, data_dir: Path, *first: str, standby: bool = False, brokers: Sequence[int] = ()
    ) -> AsyncIterator[Self]:
        """Run a controller, by the words `first` if there are any; once it is active a second one; and live brokers."""
        async with open_zookeeper(address, security=security_of_environment()) as store:
            cluster = cls(store, data_dir, address)
            async with stopping(cluster):
                cluster.start(FIRST, *(first or CONTROLLER))
                await until_controller(store, FIRST)
                if standby:
                    cluster.start(SECOND, *CONTROLLER)
                cluster.start_brokers(brokers)
                await cluster.until_live(brokers)
                yield cluster

    def log(self, id_: int) -> str:
        """Return what a process has printed."""
        return (self.data_dir / f"{id_}.log").read_text()

    async def fail_over(self) -> None:
        """Kill the first controller and wait for the second."""
        await self.kill(FIRST)
        await until_controller(self.store, SECOND)

    async def klamm(self, *arguments: str) -> tuple[int, str]:
        """Run the command on this cluster; return its exit code and all it printed."""
        done = await run_klamm(*arguments, "--zookeeper", self.zookeeper)
        return done.returncode, done.stdout.decode() + without_cluster(done.stderr.decode())

    async def create_topic(self, name: str, *replicas: tuple[int, ...]) -> None:
        """Create a topic with these replicas of its partitions, and wait until each has a state."""
        [created] = (await self.admin.create_topics([NewTopic(name, len(replicas), len(replicas[0]), replicas)])).topics
        assert created.error is ErrorCode.NONE
        states = [paths.partition_state(TopicPartition(name, number)) for number in range(len(replicas))]

        async def have_states() -> bool:
            return None not in await self.store.read(states)

        await until(have_states)

    async def load(self, topic: str) -> DemoLoad:
        """Return a producer and consumer of a topic."""
        brokers = (await self.admin.read_metadata([])).brokers
        return DemoLoad(TcpNetwork(), [(broker.host, broker.port) for broker in brokers], topic)

    async def states(self, topic: str = ORDERS.topic) -> tuple[PartitionState, ...]:
        """Return a topic's partitions as the active controller knows them."""
        return (await self.admin.read_metadata([topic])).partitions

    async def state(self, tp: TopicPartition = ORDERS) -> LeaderAndIsr:
        """Return a partition's state as ZooKeeper has it."""
        znode = await self.znode(paths.partition_state(tp))
        return formats.decode_partition_state(tp, znode.data, znode.stat.version)

    async def assignments(self, topic: str = ORDERS.topic) -> dict[int, ReplicaAssignment]:
        """Return a topic's assignments as ZooKeeper has them."""
        return dict(formats.decode_topic(topic, (await self.znode(paths.topic(topic))).data).partitions)

    async def assignment(self) -> ReplicaAssignment:
        """Return the partition's assignment as ZooKeeper has it."""
        return (await self.assignments())[ORDERS.partition]

    async def reassign(self, replicas: tuple[int, ...] | None, tp: TopicPartition = ORDERS) -> PartitionError:
        """Begin a move, or cancel it."""
        [outcome] = (await self.admin.alter_partition_reassignments([ReassignablePartition(*tp, replicas)])).partitions
        return outcome

    async def znode(self, path: str) -> Znode:
        """Return a znode that must be there."""
        [znode] = await self.store.read([path])
        assert znode is not None
        return znode

    async def until_gone(self, path: str) -> None:
        """Wait until a znode does not exist."""

        async def is_gone() -> bool:
            return await self.store.read([path]) == [None]

        await until(is_gone)

    async def until_live(self, brokers: Sequence[int]) -> None:
        """Wait until the active controller knows just these brokers, given in order, as live."""
        await until_live(self.admin, brokers)

    async def until_nothing_moves(self) -> None:
        """Wait for the end of all moves."""

        async def is_still() -> bool:
            return not await self.admin.list_reassignments()

        await until(is_still)
