"""Reassignments are listed, described and distinguished by every controller: processes on ZooKeeper."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controller.admin.reassignments import Reassignment
from tests.cluster.running import SECOND, RealCluster
from tests.kit.service import error_code
from transport.errors import ApiError, ErrorCode
from transport.messages import UNTHROTTLED, ListReassignmentsRequest, ReassignablePartition
from transport.metadata import TopicPartition
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.protocol import Delete
from transport.wire import open_connection

BROKERS = (1, 2, 3, 4)
SLOW = 4
TPS = [TopicPartition("orders", number) for number in range(2)]


async def ask_standby(cluster: RealCluster) -> ErrorCode:
    znode = await cluster.znode(paths.controller_endpoint(SECOND))
    where = formats.decode_controller_endpoint(SECOND, znode.data)
    async with open_connection(TcpNetwork(), where.host, where.port, client_id="test") as connection:
        return await error_code(connection, ListReassignmentsRequest())


@pytest.fixture
async def cluster(zookeeper: str, tmp_path: Path) -> AsyncIterator[RealCluster]:
    """Run two controllers, the first of which is active, and brokers with a topic of two partitions."""
    async with RealCluster.running(
        f"{zookeeper}/reassignment-identity", tmp_path, standby=True, brokers=BROKERS
    ) as cluster:
        await cluster.create_topic("orders", (1, SLOW), (2, SLOW))
        yield cluster


@pytest.mark.requirement("B1", "B2", "B3", "B4", "A9")
async def test_a_reassignment_is_itself_until_it_is_over(cluster: RealCluster) -> None:
    store, admin = cluster.store, cluster.admin
    assert await admin.list_reassignments(TPS) == ()
    with pytest.raises(ApiError, match="there is no partition orders-9") as unknown:
        await admin.list_reassignments([TPS[0], TopicPartition("orders", 9)])
    assert unknown.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await ask_standby(cluster) is ErrorCode.NOT_CONTROLLER

    await cluster.kill(SLOW)
    await cluster.until_live((1, 2, 3))
    asked = [ReassignablePartition(*tp, (SLOW, 3)) for tp in TPS]
    outcomes = (await admin.alter_partition_reassignments(asked)).partitions
    assert {outcome.error for outcome in outcomes} == {ErrorCode.NONE}
    one, two = begun = await admin.list_reassignments()
    znode = (await cluster.znode(paths.reassignment(TPS[0]))).stat
    topic = (await cluster.znode(paths.topic("orders"))).stat
    assert (znode.czxid, znode.ctime_ms) == (topic.mzxid, topic.mtime_ms)
    assert [Reassignment(*tp, znode.czxid) for tp in TPS] == [one, two]
    before = await admin.describe_reassignments()
    assert list(before) == [one, two]
    assert (before[one].start_time_ms, before[one].leader, before[one].new_replicas) == (znode.ctime_ms, 1, (SLOW, 3))
    assert {before[one].leader_throttle, *(p.throttle for p in before[one].progress)} == {UNTHROTTLED}
    assert f"broker {SLOW}, which is not alive" in before[one].waits_for

    # Of one move the znode is lost, as if Kafka's controller had begun it.
    await store.multi([Delete(paths.reassignment(TPS[1]))])
    await cluster.fail_over()
    same, another = await admin.list_reassignments()
    assert (await cluster.reassign((SLOW, 2))).error is ErrorCode.NONE
    assert await admin.list_reassignments() == (same, another), "an override is the same reassignment"
    assert (same, another == two) == (one, False)
    after = await admin.describe_reassignments(begun)
    assert list(after) == [one]
    assert (after[one].start_time_ms, after[one].new_replicas) == (before[one].start_time_ms, (SLOW, 2))
    with pytest.raises(LookupError, match="was not asked for"):
        after[another]

    cluster.start_brokers([SLOW])
    await cluster.until_nothing_moves()
    assert await store.children([paths.REASSIGNMENTS]) == [[]]
    assert await admin.describe_reassignments([same, another]) == {}

    await cluster.kill(SLOW)
    await cluster.until_live((1, 2, 3))
    assert (await cluster.reassign((SLOW, 3))).error is ErrorCode.NONE
    [again] = await admin.list_reassignments()
    assert again != one
    await admin.delete_topics(["orders"])
    cluster.start_brokers([SLOW])
    await cluster.until_gone(paths.topic("orders"))
    await cluster.until_gone(paths.topic_reassignments("orders"))
    assert await store.children([paths.REASSIGNMENTS]) == [[]]
