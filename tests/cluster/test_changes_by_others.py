"""What brokers and tools write into ZooKeeper by themselves: another address, an ISR, topics that grow; real."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from attrs import evolve

from controller.admin.client import AdminClient
from klamm.cli.demo.clusters import CONTROLLERS, log_dir
from klamm.cli.demo.load import Load
from klamm.cli.demo.process_cluster import ProcessCluster, stopping
from klamm.cli.demo.scenario import ORDERS
from tests.cluster.waiting import until, until_controller
from tests.kit.tcp_relay import tcp_relay
from transport.errors import ErrorCode
from transport.messages import NewPartitions, NewTopic, PartitionState
from transport.metadata import NO_LEADER, ReplicaAssignment, TopicPartition
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import Create, MetadataStore, Set
from transport.store.zookeeper import open_zookeeper

RACKS = {1: "a", 2: "a", 3: "b"}
RECORDS = 50


def start_broker(cluster: ProcessCluster, broker_id: int) -> None:
    where = ("--log-dir", str(log_dir(cluster.data_dir, broker_id)), "--rack", RACKS[broker_id])
    cluster.start(broker_id, "klamm", "broker", "run", *where)


async def announce_port(store: MetadataStore, broker_id: int, port: int) -> None:
    """Let a live broker's registration name another port."""
    [znode] = await store.read([paths.broker(broker_id)])
    assert znode is not None
    registration = orjson.loads(znode.data) | {"endpoints": [f"KLAMM://127.0.0.1:{port}"]}
    await store.multi([Set(paths.broker(broker_id), orjson.dumps(registration), znode.stat.version)])


async def shrink_isr(store: MetadataStore, *isr: int) -> None:
    """Write an ISR as leaders did before AlterPartition, and notify the controller."""
    [znode] = await store.read([paths.partition_state(ORDERS)])
    assert znode is not None
    state = evolve(formats.decode_partition_state(ORDERS, znode.data, znode.stat.version), isr=isr)
    notice = Create(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_", formats.encode_partitions([ORDERS]), sequence=True)
    data = formats.encode_partition_state(state)
    await store.multi([Set(paths.partition_state(ORDERS), data, znode.stat.version), notice])


async def add_partition(store: MetadataStore, replicas: tuple[int, ...]) -> None:
    """Add a partition as Kafka's tools do, in the topic's znode."""
    [znode] = await store.read([paths.topic(ORDERS.topic)])
    assert znode is not None
    topic = formats.decode_topic(ORDERS.topic, znode.data)
    partitions = {**topic.partitions, len(topic.partitions): ReplicaAssignment(replicas)}
    data = formats.encode_topic(evolve(topic, partitions=partitions))
    await store.multi([Set(paths.topic(ORDERS.topic), data, znode.stat.version)])


@pytest.mark.requirement("D5", "D8", "D9", "C5")
async def test_the_controller_follows_what_others_write(zookeeper: str, tmp_path: Path) -> None:
    address = f"{zookeeper}/others"
    async with open_zookeeper(address) as store, stopping(ProcessCluster(store, tmp_path, address)) as cluster:
        cluster.start(CONTROLLERS[0], "klamm", "controller", "run")
        for broker_id in RACKS:
            start_broker(cluster, broker_id)
        await until_controller(store, CONTROLLERS[0])
        admin = AdminClient(TcpNetwork(), [], store, 60)

        async def ports() -> dict[int, int]:
            return {broker.id: broker.port for broker in (await admin.read_metadata()).brokers}

        async def all_live() -> bool:
            return len(await ports()) == len(RACKS)

        async def states(topic: str) -> list[PartitionState]:
            return list((await admin.read_metadata([topic])).partitions)

        async def are_led(topic: str, *leaders: int) -> bool:
            return [state.leader for state in await states(topic)] == [*leaders]

        await until(all_live)
        await admin.create_topics([NewTopic(ORDERS.topic, 1, 2, ((2, 1),))])

        # A broker listens elsewhere: orders and fetches go there, under the same broker epoch.
        async with tcp_relay((await ports())[2]) as relay:
            relay.serves = 100
            [before] = await store.read([paths.broker(2)])
            await announce_port(store, 2, relay.port)

            async def is_told() -> bool:
                return (await ports())[2] == relay.port

            async def is_called() -> bool:
                return relay.serves <= 98  # the controller's channel, and the follower's fetches

            await until(is_told)
            await until(is_called)
            await admin.create_topics([NewTopic("later", 1, 2, ((2, 3),))])
            addresses = [(b.host, b.port) for b in (await admin.read_metadata()).brokers]
            load = Load(TcpNetwork(), addresses, "later")
            await load.fill(RECORDS, 10)
            assert len(await load.read_back()) == RECORDS
            [after] = await store.read([paths.broker(2)])
            assert before is not None
            assert after is not None
            assert after.stat.czxid == before.stat.czxid

            # A topic grows: by hand, and as an administrator asks, across the racks.
            await add_partition(store, (3, 2))
            await until(lambda: are_led(ORDERS.topic, 2, 3))
            [grown] = (await admin.create_partitions([NewPartitions(ORDERS.topic, 5)])).topics
            assert grown.error is ErrorCode.NONE
            added = (await states(ORDERS.topic))[2:]
            assert [{RACKS[id_] for id_ in state.replicas} for state in added] == [{"a", "b"}] * 3
            assert all(state.leader == state.replicas[0] for state in added)

            # A leader writes its ISR by itself, which counts in the next election.
            await shrink_isr(store, 2)

            async def is_taken_over() -> bool:
                return (await states(ORDERS.topic))[0].isr == (2,)

            await until(is_taken_over)
            assert await store.children([paths.ISR_CHANGE_NOTIFICATION]) == [[]]
            await cluster.kill(2)

        async def has_no_leader() -> bool:
            return (await states(ORDERS.topic))[0].leader == NO_LEADER

        await until(has_no_leader)
        [znode] = await store.read([paths.partition_state(TopicPartition("later", 0))])
        assert znode is not None
        assert formats.decode_partition_state(ORDERS, znode.data, 0).isr == (3,)
