"""Ten thousand partitions in one request: a controller's process on ZooKeeper, the brokers only registered."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cluster.running import CONTROLLER, RealCluster
from tests.cluster.waiting import until
from transport.errors import ErrorCode
from transport.messages import ReassignablePartition
from transport.metadata import BrokerRegistration, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, MetadataStore, Set, ensure_paths

BROKERS = (1, 2, 3, 4, 5, 6)
ORIGIN, TARGET = (1, 2, 3), (4, 5, 6)
MANY = 10_000
TPS = [TopicPartition("orders", number) for number in range(MANY)]
CHUNK = 500


async def make_cluster(store: MetadataStore) -> None:
    """Register brokers that nobody can reach, and write a large topic."""
    await ensure_paths(store, paths.PERSISTENT)
    for id_ in BROKERS:
        data = formats.encode_broker(BrokerRegistration(id_, "127.0.0.1", 1, -1), 0)
        await store.multi([Create(paths.broker(id_), data, ephemeral=True)])
    topic = formats.TopicZnode(dict.fromkeys(range(MANY), ReplicaAssignment(ORIGIN)), "id-of-orders")
    await store.multi([Create(paths.topic("orders"), formats.encode_topic(topic))])


async def grow_isrs(store: MetadataStore) -> None:
    """Let every leader find that the new replicas have caught up, as leaders did before AlterPartition."""
    for start in range(0, MANY, CHUNK):
        tps = TPS[start : start + CHUNK]
        found = await store.read([paths.partition_state(tp) for tp in tps])
        writes = []
        for tp, znode in zip(tps, found, strict=True):
            assert znode is not None
            state = formats.decode_partition_state(tp, znode.data, znode.stat.version)
            data = formats.encode_partition_state(replace(state, isr=(*ORIGIN, *TARGET)))
            writes.append(Set(paths.partition_state(tp), data, znode.stat.version))
        await store.multi(writes)
    notification = f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_"
    await store.multi([Create(notification, formats.encode_partitions(TPS), sequence=True)])


@pytest.mark.soak
@pytest.mark.requirement("A1", "A5", "A11")
async def test_ten_thousand_partitions_move_in_few_writes(zookeeper: str, tmp_path: Path) -> None:
    address = f"{zookeeper}/large-batches"
    async with RealCluster.running(address, tmp_path, *CONTROLLER, "--log-level", "error") as cluster:
        store, admin = cluster.store, cluster.admin
        await make_cluster(store)

        async def are_led() -> bool:
            return (await admin.describe_cluster()).partitions == MANY

        async def topic() -> tuple[formats.TopicZnode, int]:
            znode = await cluster.znode(paths.topic("orders"))
            return formats.decode_topic("orders", znode.data), znode.stat.version

        async def have_moved() -> bool:
            return set((await topic())[0].partitions.values()) == {ReplicaAssignment(TARGET)}

        await until(are_led)
        answer = await admin.alter_partition_reassignments([ReassignablePartition(*tp, TARGET) for tp in TPS])
        assert Counter(item.error for item in answer.partitions) == {ErrorCode.NONE: MANY}
        moving, version = await topic()
        assert set(moving.partitions.values()) == {ReplicaAssignment((*TARGET, *ORIGIN), TARGET, ORIGIN)}
        assert version == MANY / CHUNK

        await grow_isrs(store)
        await until(have_moved)
        assert (await topic())[1] == 2 * MANY / CHUNK
        assert await admin.list_partition_reassignments() == ()
