"""Changes that brokers and tools write into a real ZooKeeper by themselves: another address, an ISR, partitions."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from msgspec.structs import replace

from klamm.cli.demo.clusters import log_dir
from klamm.cli.demo.process_cluster import ProcessCluster
from klamm.cli.demo.scenario import ORDERS
from tests.cluster.running import RealCluster
from tests.cluster.waiting import until
from tests.controller.meddler import set_assignments
from tests.kit.tcp_relay import tcp_relay
from transport.errors import ErrorCode
from transport.messages import NewPartitions
from transport.metadata import NO_LEADER, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Set

RACKS = {1: "a", 2: "a", 3: "b"}
RECORDS = 50


def start_broker(cluster: ProcessCluster, broker_id: int) -> None:
    where = ("--log-dir", str(log_dir(cluster.data_dir, broker_id)), "--rack", RACKS[broker_id])
    cluster.start(broker_id, "klamm", "broker", "run", *where)


async def announce_port(cluster: RealCluster, broker_id: int, port: int) -> None:
    """Let a live broker's registration name another port."""
    znode = await cluster.znode(paths.broker(broker_id))
    registration = orjson.loads(znode.data) | {"endpoints": [f"KLAMM://127.0.0.1:{port}"]}
    await cluster.store.multi([Set(paths.broker(broker_id), orjson.dumps(registration), znode.stat.version)])


async def shrink_isr(cluster: RealCluster, *isr: int) -> None:
    """Write an ISR as leaders did before AlterPartition, and notify the controller."""
    state = await cluster.state()
    notice = Create(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_", formats.encode_partitions([ORDERS]), sequence=True)
    data = formats.encode_partition_state(replace(state, isr=isr))
    await cluster.store.multi([Set(paths.partition_state(ORDERS), data, state.partition_epoch), notice])


async def add_partition(cluster: RealCluster, replicas: tuple[int, ...]) -> None:
    """Add a partition as Kafka's tools do, in the topic's znode."""
    znode = await cluster.znode(paths.topic(ORDERS.topic))
    added = {len(await cluster.assignments()): ReplicaAssignment(replicas)}
    await cluster.store.multi([set_assignments(ORDERS.topic, znode, added)])


@pytest.mark.requirement("D5", "D8", "D9", "C5")
async def test_the_controller_follows_what_others_write(zookeeper: str, tmp_path: Path) -> None:
    async with RealCluster.running(f"{zookeeper}/others", tmp_path) as cluster:
        for broker_id in RACKS:
            start_broker(cluster, broker_id)
        await cluster.until_live(list(RACKS))

        async def port(broker_id: int) -> int:
            brokers = (await cluster.admin.read_metadata()).brokers
            return {broker.id: broker.port for broker in brokers}[broker_id]

        async def are_led(*leaders: int) -> bool:
            return [state.leader for state in await cluster.states()] == [*leaders]

        await cluster.create_topic(ORDERS.topic, (2, 1))

        # A broker listens elsewhere: orders and fetches go there, under the same broker epoch.
        async with tcp_relay(await port(2)) as relay:
            relay.serves = 100
            before = await cluster.znode(paths.broker(2))
            await announce_port(cluster, 2, relay.port)

            async def is_told() -> bool:
                return await port(2) == relay.port

            async def is_called() -> bool:
                return relay.serves <= 98  # the controller's channel, and the follower's fetches

            await until(is_told)
            await until(is_called)
            await cluster.create_topic("later", (2, 3))
            load = await cluster.load("later")
            await load.fill(RECORDS, 10)
            assert len(await load.read_back()) == RECORDS
            assert (await cluster.znode(paths.broker(2))).stat.czxid == before.stat.czxid

            # A topic grows: by hand, and as an administrator asks, across the racks.
            await add_partition(cluster, (3, 2))
            await until(lambda: are_led(2, 3))
            [grown] = (await cluster.admin.create_partitions([NewPartitions(ORDERS.topic, 5)])).topics
            assert grown.error is ErrorCode.NONE
            added = (await cluster.states())[2:]
            assert [{RACKS[id_] for id_ in state.replicas} for state in added] == [{"a", "b"}] * 3
            assert all(state.leader == state.replicas[0] for state in added)

            # A leader writes its ISR by itself, which counts in the next election.
            await shrink_isr(cluster, 2)

            async def is_taken_over() -> bool:
                return (await cluster.states())[0].isr == (2,)

            await until(is_taken_over)
            assert await cluster.store.children([paths.ISR_CHANGE_NOTIFICATION]) == [[]]
            await cluster.kill(2)

        async def has_no_leader() -> bool:
            return (await cluster.states())[0].leader == NO_LEADER

        await until(has_no_leader)
        assert (await cluster.state(TopicPartition("later", 0))).isr == (3,)
