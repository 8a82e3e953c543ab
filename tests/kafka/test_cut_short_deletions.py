"""A deletion that was cut short in the middle of a move ends on real brokers, two of which return late."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.kafka import jars
from tests.kafka.real_cluster import FIRST, RealCluster, real_cluster, until
from tests.kafka.traffic import read, write
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.protocol import Create, Delete, MetadataStore, Set
from transport.store.zookeeper import open_zookeeper

TP = TopicPartition("orders", 0)
MOVING = ReplicaAssignment((1, 2, 3, 4), adding_replicas=(4,), removing_replicas=(1,))
LATE = (1, 4)
BESIDE = 5
AGAIN = (4, 3)


async def leave_behind(store: MetadataStore) -> None:
    """Write what a controller leaves that dies in a recursive deletion of a topic that is being moved."""
    [znode] = await store.read([paths.topic("orders")])
    assert znode is not None
    topic_id = formats.decode_topic("orders", znode.data).topic_id
    moving = formats.encode_topic(TopicZnode({0: MOVING}, topic_id))
    below = (paths.partition_state(TP), paths.partition(TP), paths.topic_partitions("orders"))
    request = formats.encode_reassign_partitions({TP: (4, 2, 3)})
    await store.multi(
        [
            Set(paths.topic("orders"), moving, znode.stat.version),
            *map(Delete, below),
            Create(paths.delete_topic("orders")),
            Create(paths.REASSIGN_PARTITIONS, request),
        ]
    )


async def is_gone(store: MetadataStore, *there: str) -> bool:
    return not any(await store.read(there))


@pytest.mark.soak
async def test_a_deletion_that_was_cut_short_in_a_move_ends(zookeeper: str, tmp_path: Path, kafka_jars: Path) -> None:
    assert kafka_jars.name == jars.RELEASE
    address = f"{zookeeper}/{tmp_path.name}"
    running = real_cluster(address, tmp_path, broker_ids=(1, 2, 3, 4, BESIDE))
    async with running as cluster, open_zookeeper(address) as store:
        await cluster.create("orders", (1, 2, 3))
        await cluster.create("others", (2, 3, BESIDE))
        servers = cluster.servers(2, 3, BESIDE)
        await write(servers, "orders", 100)
        for late in LATE:
            await cluster.brokers[late].terminate()
        await cluster.until_registered(2, 3, BESIDE)
        cluster.controllers.kill(FIRST)
        await leave_behind(store)
        cluster.controllers.start(FIRST)

        async def is_served() -> bool:
            return [broker.id for broker in (await cluster.admin.read_metadata([])).brokers] == [2, 3, BESIDE]

        await until(is_served)
        # An idempotent producer needs an id from the controller, and nothing of this waits for the late brokers.
        written = await write(servers, "others", 100)
        assert await is_gone(store, paths.REASSIGN_PARTITIONS)
        for late in LATE:
            await cluster.brokers[late].start()
        left = (paths.topic("orders"), paths.delete_topic("orders"), paths.topic_reassignments("orders"))

        async def is_over() -> bool:
            return await is_gone(store, *left)

        await until(is_over)
        await cluster.until_without_logs("orders", 1, 2, 3, 4)
        assert "after a fault" not in cluster.controllers.log(FIRST).read_text()
        await judge_next(cluster, store)
        assert len(await read(cluster.bootstrap, "others", "group")) == len(written.values)


async def judge_next(cluster: RealCluster, store: MetadataStore) -> None:
    """Create the topic again, and see that nothing of the earlier one moves it or deletes its logs."""
    await cluster.create("orders", AGAIN)
    await write(cluster.bootstrap, "orders", 50)
    cluster.controllers.kill(FIRST)
    cluster.controllers.start(FIRST)
    await cluster.until_registered(1, 2, 3, 4, BESIDE)
    await cluster.until_in_sync("orders")
    await trio.sleep(2)
    assert (await cluster.state("orders")).replicas == AGAIN
    assert await is_gone(store, paths.REASSIGN_PARTITIONS)
    assert [id_ for id_, broker in cluster.brokers.items() if broker.logs("orders")] == sorted(AGAIN)
    assert len(await read(cluster.bootstrap, "orders", "group")) == 50
