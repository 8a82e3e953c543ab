"""Unmodified brokers of Apache Kafka under a controller of ours, with a real ZooKeeper and real clients.

The brokers keep three replicas of each partition and take records while two of them are in sync.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.kafka.expectations import (
    OFFSETS,
    elections,
    require_all_read,
    require_standbys,
    until_elected,
)
from tests.kafka.real_cluster import FIRST, RealCluster, real_cluster
from tests.kafka.traffic import committing, create_topic, topics, until_more, write, writing

SECOND = 1002
RECORDS = 10_000
RECORDS_AFTER = 100
SHUT_DOWN = re.compile("Controlled shutdown (succeeded|request returned successfully)")
STOPPED_BY_SIGTERM = 143
"""The exit code of a Java process that SIGTERM has ended in order."""


async def test_brokers_live_under_our_controller(cluster: RealCluster) -> None:
    await live(cluster)


async def live(cluster: RealCluster) -> None:
    """Lose, stop and regain brokers, move a partition and delete a topic while two producers write."""
    await cluster.create("bulk", partitions=3)
    written = await write(cluster.bootstrap, "bulk", RECORDS)
    assert len(written.values) == RECORDS
    await require_all_read(cluster, "bulk", written)
    # The brokers created this topic for the consumer group, and knew of four nodes.
    offsets = await cluster.states(OFFSETS)
    assert len(offsets) == 5
    assert {frozenset(state.replicas) for state in offsets} == {frozenset({1, 2, 3})}

    await cluster.create("orders", partitions=3)
    await cluster.create("moved", (1, 2))
    async with writing(cluster.bootstrap, "orders") as orders, writing(cluster.bootstrap, "moved") as moved:
        await lose_and_regain_a_leader(cluster)
        await shut_down_in_order(cluster)
        await cluster.move("moved", 2, 3)
        await cluster.until_without_logs("moved", 1)
        await cluster.delete("bulk")
        await cluster.until_without_logs("bulk", 1, 2, 3)
    assert (await cluster.state("moved")).replicas == (2, 3)
    await require_all_read(cluster, "orders", orders)
    await require_all_read(cluster, "moved", moved)
    assert [await topics(cluster.servers(id_)) for id_ in cluster.brokers] == [{"orders", "moved", OFFSETS}] * 3
    require_standbys(cluster)


@pytest.mark.soak
async def test_transactions_go_on_when_the_controller_and_a_leader_die(cluster: RealCluster) -> None:
    await fail_over(cluster)


async def fail_over(cluster: RealCluster) -> None:
    """Kill the controller in office and a leader while records are written in transactions."""
    await cluster.create("paid", partitions=3)
    cluster.controllers.start(SECOND)
    async with committing(cluster.bootstrap, "paid") as paid:
        cluster.controllers.kill(FIRST)
        # Nobody replaces its leader before the second controller is in office.
        broker = cluster.brokers[(await cluster.state("paid")).leader]
        broker.kill()
        await cluster.until_in_sync("paid", count=3, without=broker.id)
        assert (await cluster.admin.describe_cluster()).controller.id == SECOND
        await until_more(paid, RECORDS_AFTER)
    await require_all_read(cluster, "paid", paid)
    assert 1001 not in {r for state in await cluster.states("__transaction_state") for r in state.replicas}
    require_standbys(cluster)


@pytest.mark.soak
async def test_the_office_goes_from_kafka_to_us_and_back(zookeeper: str, tmp_path: Path, release: str) -> None:
    running = real_cluster(f"{zookeeper}/real-{tmp_path.name}", tmp_path, release=release, is_first=False)
    async with running as cluster:
        await until_elected(cluster, 1)
        await cluster.until_all_know_all()
        await create_topic(cluster.bootstrap, "orders")
        async with writing(cluster.bootstrap, "orders") as orders:
            await cluster.hand_over("take-over")
            await cluster.until_in_sync("orders", count=3)
            await lose_and_regain_a_leader(cluster)
            assert elections(cluster) == 1
            await cluster.hand_over("release")
            await until_elected(cluster, 2)
            await until_more(orders, RECORDS_AFTER)
        await require_all_read(cluster, "orders", orders)
        assert elections(cluster) == 2


async def lose_and_regain_a_leader(cluster: RealCluster) -> None:
    """Kill the leader of a partition: another one leads, and the first returns into every ISR."""
    before = await cluster.state("orders")
    broker = cluster.brokers[before.leader]
    broker.kill()
    await cluster.until_in_sync("orders", count=3, without=broker.id)
    after = await cluster.state("orders")
    assert after.leader != before.leader
    assert after.leader_epoch > before.leader_epoch
    # Until its session has ended, a broker that is back finds its own id taken, and gives up.
    await cluster.until_registered(*({1, 2, 3} - {broker.id}))
    await broker.start()
    await cluster.until_in_sync("orders")
    if await cluster.states(OFFSETS):
        await cluster.until_in_sync(OFFSETS)


async def shut_down_in_order(cluster: RealCluster) -> None:
    """Stop a broker that leads: its partitions are led by others before it ends."""
    leader = (await cluster.state("orders")).leader
    broker = cluster.brokers[leader]
    assert await broker.terminate() == STOPPED_BY_SIGTERM
    assert SHUT_DOWN.search(broker.log.read_text())
    await cluster.until_in_sync("orders", count=3, without=leader)
    await broker.start()
    await cluster.until_in_sync("orders")
