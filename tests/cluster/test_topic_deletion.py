"""Topics are deleted, whoever dies in the middle of it; real ZooKeeper, processes, sockets and SIGKILL."""

from __future__ import annotations

import signal
import sys
from functools import partial
from pathlib import Path

import pytest

from controller.admin.client import AdminClient
from controller.monitoring.state_dump import dump
from klamm.cli.demo.clusters import CONTROLLERS, log_dir
from klamm.cli.demo.load import Load
from klamm.cli.demo.process_cluster import ProcessCluster, stopping
from klamm.cli.demo.scenario import ORDERS
from tests.cluster.waiting import until, until_controller, until_live
from tests.controller.meddler import set_assignments
from transport.child_process import spawn
from transport.errors import ErrorCode
from transport.messages import NewTopic, ReassignablePartition
from transport.metadata import ReplicaAssignment
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.zookeeper import open_zookeeper

FIRST, SECOND = CONTROLLERS
REPLICAS = (1, 2, 3)


@pytest.mark.requirement("C5", "D3", "D7", "D8")
async def test_the_next_controller_deletes_it_and_waits_for_a_dead_broker(zookeeper: str, tmp_path: Path) -> None:
    address = f"{zookeeper}/topic-deletion"
    async with open_zookeeper(address) as store, stopping(ProcessCluster(store, tmp_path, address)) as cluster:
        cluster.start(FIRST, "tests.cluster.dying_controller", "--after", "stop", "publish")
        await until_controller(store, FIRST)
        cluster.start(SECOND, "klamm", "controller", "run")
        cluster.start_brokers(REPLICAS)
        admin = AdminClient(TcpNetwork(), [], store, 60)
        logs = {broker_id: log_dir(tmp_path, broker_id) / str(ORDERS) for broker_id in REPLICAS}

        async def are_live(*broker_ids: int) -> bool:
            return [broker.id for broker in (await admin.read_metadata([])).brokers] == [*broker_ids]

        async def write(count: int) -> list[bytes]:
            [topic] = (await admin.create_topics([NewTopic(ORDERS.topic, 2, 3, (REPLICAS, REPLICAS))])).topics
            assert topic.error is ErrorCode.NONE
            brokers = (await admin.read_metadata()).brokers
            load = Load(TcpNetwork(), [(b.host, b.port) for b in brokers], ORDERS.topic)
            await load.fill(count, 10)
            return await load.read_back()

        async def assignment() -> dict[int, ReplicaAssignment]:
            [znode] = await store.read([paths.topic("orders")])
            assert znode is not None
            return dict(formats.decode_topic("orders", znode.data).partitions)

        async def has_two_partitions() -> bool:
            return len(await assignment()) == 2

        async def only_the_dead_have_it() -> bool:
            return [broker_id for broker_id, log in logs.items() if log.exists()] == [3]

        async def is_deleted() -> bool:
            return deleting.poll() is not None

        await until(partial(are_live, *REPLICAS))
        await write(100)
        await cluster.kill(3)
        await until(partial(are_live, 1, 2))
        command = [sys.executable, "-m", "klamm", "topic", "delete", "orders", "--zookeeper", address]
        deleting = spawn(command, tmp_path / "delete.log")
        await until(only_the_dead_have_it)
        assert cluster.processes[FIRST].poll() == -signal.SIGKILL
        await until_controller(store, SECOND)
        assert (await dump(store))["delete_topics"] == ["orders"]
        [refused] = (await admin.create_topics([NewTopic(ORDERS.topic, 1, 1)])).topics
        assert refused.error is ErrorCode.TOPIC_ALREADY_EXISTS
        [znode] = await store.read([paths.topic("orders")])
        await store.multi([set_assignments("orders", znode, {2: ReplicaAssignment(REPLICAS)})])
        await until(has_two_partitions)

        cluster.start_brokers([3])
        await until(is_deleted)
        assert deleting.returncode == 0
        lines = (tmp_path / "delete.log").read_text().splitlines()
        waits = "orders waits for broker 3 to come back and delete its replicas"
        assert lines == [waits, "deleted topic orders"]
        assert not any(log.exists() for log in logs.values())
        assert await store.children([paths.TOPICS, paths.DELETE_TOPICS]) == [[], []]

        assert len(await write(20)) == 20
        assert all(log.exists() for log in logs.values())


@pytest.mark.requirement("A4", "D7")
async def test_a_topic_of_the_longest_name_lives_a_whole_life(zookeeper: str, tmp_path: Path) -> None:
    address, name = f"{zookeeper}/longest-name", "x" * 249
    async with open_zookeeper(address) as store, stopping(ProcessCluster(store, tmp_path, address)) as cluster:
        cluster.start(FIRST, "klamm", "controller", "run")
        cluster.start_brokers(REPLICAS)
        admin = AdminClient(TcpNetwork(), [], store, 60)

        def holders() -> list[int]:
            return [id_ for id_ in REPLICAS if list(log_dir(tmp_path, id_).glob("x*"))]

        async def has_moved() -> bool:
            return holders() == [2, 3]

        async def is_gone() -> bool:
            return holders() == [] and await store.children([paths.TOPICS]) == [[]]

        await until_live(admin, REPLICAS)
        for _ in range(2):
            [topic] = (await admin.create_topics([NewTopic(name, 1, 2, ((1, 2),))])).topics
            assert topic.error is ErrorCode.NONE
            brokers = (await admin.read_metadata()).brokers
            await Load(TcpNetwork(), [(b.host, b.port) for b in brokers], name).fill(10, 10)
            await admin.alter_partition_reassignments([ReassignablePartition(name, 0, (2, 3))])
            await until(has_moved)
            await admin.delete_topics([name])
            await until(is_gone)
