"""Reassignments are listed, described and told apart, whatever controller is asked: processes on ZooKeeper."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from controller.admin.client import AdminClient
from controller.admin.reassignments import Reassignment
from klamm.cli.demo.clusters import CONTROLLERS
from klamm.cli.demo.process_cluster import ProcessCluster, stopping
from tests.cluster.waiting import PATIENCE_SECONDS, until, until_controller, until_live
from tests.kit.service import error_code
from transport.errors import ApiError, ErrorCode
from transport.messages import UNTHROTTLED, ListReassignmentsRequest, NewTopic, ReassignablePartition
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import Delete, MetadataStore, Stat
from transport.store.zookeeper import open_zookeeper
from transport.wire import open_connection

FIRST, SECOND = CONTROLLERS
BROKERS = (1, 2, 3, 4)
SLOW = 4
TPS = [TopicPartition("orders", number) for number in range(2)]


async def stat(store: MetadataStore, path: str) -> Stat:
    [znode] = await store.read([path])
    assert znode is not None
    return znode.stat


async def move(admin: AdminClient, *targets: tuple[int, ...]) -> None:
    """Ask for new targets of the first partitions."""
    asked = [ReassignablePartition(*tp, target) for tp, target in zip(TPS, targets, strict=False)]
    outcomes = (await admin.alter_partition_reassignments(asked)).partitions
    assert {outcome.error for outcome in outcomes} == {ErrorCode.NONE}


async def nothing_moves(admin: AdminClient) -> bool:
    return not await admin.list_reassignments()


async def is_gone(store: MetadataStore, path: str) -> bool:
    return await store.read([path]) == [None]


async def ask_standby(store: MetadataStore) -> ErrorCode:
    [znode] = await store.read([paths.controller_endpoint(SECOND)])
    assert znode is not None
    where = formats.decode_controller_endpoint(SECOND, znode.data)
    async with open_connection(TcpNetwork(), where.host, where.port, client_id="test") as connection:
        return await error_code(connection, ListReassignmentsRequest())


@pytest.fixture
async def cluster(zookeeper: str, tmp_path: Path) -> AsyncIterator[ProcessCluster]:
    """Run two controllers, the first of which is active, and brokers with a topic of two partitions."""
    address = f"{zookeeper}/reassignment-identity"
    async with open_zookeeper(address) as store, stopping(ProcessCluster(store, tmp_path, address)) as cluster:
        cluster.start(FIRST, "klamm", "controller", "run")
        await until_controller(store, FIRST)
        cluster.start(SECOND, "klamm", "controller", "run")
        cluster.start_brokers(BROKERS)
        admin = AdminClient(TcpNetwork(), (), store, PATIENCE_SECONDS)
        await until_live(admin, BROKERS)
        [created] = (await admin.create_topics([NewTopic("orders", 2, 2, ((1, SLOW), (2, SLOW)))])).topics
        assert created.error is ErrorCode.NONE
        yield cluster


@pytest.mark.requirement("B1", "B2", "B3", "B4", "A9")
async def test_a_reassignment_is_itself_until_it_is_over(cluster: ProcessCluster) -> None:
    store = cluster.store
    admin = AdminClient(TcpNetwork(), (), store, PATIENCE_SECONDS)
    assert await admin.list_reassignments(TPS) == ()
    with pytest.raises(ApiError, match="there is no partition orders-9") as unknown:
        await admin.list_reassignments([TPS[0], TopicPartition("orders", 9)])
    assert unknown.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await ask_standby(store) is ErrorCode.NOT_CONTROLLER

    await cluster.kill(SLOW)
    await until_live(admin, (1, 2, 3))
    await move(admin, (SLOW, 3), (SLOW, 3))
    one, two = begun = await admin.list_reassignments()
    znode, topic = await stat(store, paths.reassignment(TPS[0])), await stat(store, paths.topic("orders"))
    assert (znode.czxid, znode.ctime_ms) == (topic.mzxid, topic.mtime_ms)
    assert [Reassignment(*tp, znode.czxid) for tp in TPS] == [one, two]
    before = await admin.describe_reassignments()
    assert list(before) == [one, two]
    assert (before[one].start_time_ms, before[one].leader, before[one].new_replicas) == (znode.ctime_ms, 1, (SLOW, 3))
    assert {before[one].leader_throttle, *(p.throttle for p in before[one].progress)} == {UNTHROTTLED}
    assert f"broker {SLOW}, which is not alive" in before[one].waits_for

    # Of one move the znode is lost, as if Kafka's controller had begun it.
    await store.multi([Delete(paths.reassignment(TPS[1]))])
    await cluster.kill(FIRST)
    await until_controller(store, SECOND)
    same, another = await admin.list_reassignments()
    await move(admin, (SLOW, 2))
    assert await admin.list_reassignments() == (same, another), "an override is the same reassignment"
    assert (same, another == two) == (one, False)
    after = await admin.describe_reassignments(begun)
    assert list(after) == [one]
    assert (after[one].start_time_ms, after[one].new_replicas) == (before[one].start_time_ms, (SLOW, 2))
    with pytest.raises(LookupError, match="was not asked for"):
        after[another]

    cluster.start_brokers([SLOW])
    await until(partial(nothing_moves, admin))
    assert await store.children([paths.REASSIGNMENTS]) == [[]]
    assert await admin.describe_reassignments([same, another]) == {}

    await cluster.kill(SLOW)
    await until_live(admin, (1, 2, 3))
    await move(admin, (SLOW, 3))
    [again] = await admin.list_reassignments()
    assert again != one
    await admin.delete_topics(["orders"])
    cluster.start_brokers([SLOW])
    await until(partial(is_gone, store, paths.topic("orders")))
    assert await store.children([paths.REASSIGNMENTS]) == [[]]
