"""Deletion of topics while processes die; real ZooKeeper, processes, sockets and SIGKILL."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from controller.monitoring.state_dump import dump
from klamm.cli.demo.clusters import log_dir
from klamm.cli.demo.scenario import ORDERS
from tests.cluster.running import FIRST, SECOND, RealCluster
from tests.cluster.waiting import until, until_controller
from tests.controller.meddler import set_assignments
from transport.child_process import spawn
from transport.errors import ErrorCode
from transport.messages import NewTopic
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import paths

REPLICAS = (1, 2, 3)


@pytest.mark.requirement("C5", "D3", "D7", "D8")
async def test_the_next_controller_deletes_it_and_waits_for_a_dead_broker(zookeeper: str, tmp_path: Path) -> None:
    dying = ("tests.cluster.dying_controller", "--after", "stop", "publish")
    address = f"{zookeeper}/topic-deletion"
    waits = f"cluster at {address}\norders waits for broker 3 to come back and delete its replicas\n"
    async with RealCluster.running(address, tmp_path, *dying, standby=True, brokers=REPLICAS) as cluster:
        logs = {broker_id: log_dir(tmp_path, broker_id) / str(ORDERS) for broker_id in REPLICAS}

        async def write(count: int) -> list[bytes]:
            await cluster.create_topic(ORDERS.topic, REPLICAS, REPLICAS)
            load = await cluster.load(ORDERS.topic)
            await load.fill(count, 10)
            return await load.read_back()

        async def has_two_partitions() -> bool:
            return len(await cluster.assignments()) == 2

        async def only_the_dead_have_it() -> bool:
            return [broker_id for broker_id, log in logs.items() if log.exists()] == [3]

        async def says_for_whom_it_waits() -> bool:
            return (tmp_path / "delete.log").read_text() == waits

        async def is_deleted() -> bool:
            return deleting.poll() is not None

        await write(100)
        await cluster.kill(3)
        await cluster.until_live((1, 2))
        command = [sys.executable, "-m", "klamm", "topic", "delete", "orders", "--zookeeper", address]
        deleting = spawn(command, tmp_path / "delete.log")
        await until(only_the_dead_have_it)
        assert cluster.processes[FIRST].poll() == -signal.SIGKILL
        await until_controller(cluster.store, SECOND)
        assert (await dump(cluster.store))["delete_topics"] == ["orders"]
        [refused] = (await cluster.admin.create_topics([NewTopic(ORDERS.topic, 1, 1)])).topics
        assert refused.error is ErrorCode.TOPIC_ALREADY_EXISTS
        znode = await cluster.znode(paths.topic("orders"))
        await cluster.store.multi([set_assignments("orders", znode, {2: ReplicaAssignment(REPLICAS)})])
        await until(has_two_partitions)

        await until(says_for_whom_it_waits)
        cluster.start_brokers([3])
        await until(is_deleted)
        assert deleting.returncode == 0
        assert (tmp_path / "delete.log").read_text() == f"{waits}deleted topic orders\n"
        assert not any(log.exists() for log in logs.values())
        assert await cluster.store.children([paths.TOPICS, paths.DELETE_TOPICS]) == [[], []]

        assert len(await write(20)) == 20
        assert all(log.exists() for log in logs.values())


@pytest.mark.requirement("A4", "D7")
async def test_a_topic_of_the_longest_name_lives_a_whole_life(zookeeper: str, tmp_path: Path) -> None:
    name = "x" * 249
    async with RealCluster.running(f"{zookeeper}/longest-name", tmp_path, brokers=REPLICAS) as cluster:

        def holders() -> list[int]:
            return [id_ for id_ in REPLICAS if list(log_dir(tmp_path, id_).glob("x*"))]

        async def has_moved() -> bool:
            return holders() == [2, 3]

        async def is_gone() -> bool:
            return holders() == [] and await cluster.store.children([paths.TOPICS]) == [[]]

        for _ in range(2):
            await cluster.create_topic(name, (1, 2))
            await (await cluster.load(name)).fill(10, 10)
            await cluster.reassign((2, 3), TopicPartition(name, 0))
            await until(has_moved)
            await cluster.admin.delete_topics([name])
            await until(is_gone)
