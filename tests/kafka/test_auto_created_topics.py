"""Topics that real brokers create by themselves: none keeps a replica on a controller of ours."""

from __future__ import annotations

import json
import sys
from functools import partial

import pytest
import trio

from tests.kafka.expectations import OFFSETS, require_standbys
from tests.kafka.real_cluster import FIRST, RealCluster, until
from tests.kafka.states import is_gone
from tests.kafka.traffic import Written, read, write
from transport.store import paths
from transport.store.protocol import MetadataStore
from transport.store.zookeeper import open_zookeeper

SECOND = 1002
RECORDS = 1_000
TOPIC = "auto"


async def replicas_of(store: MetadataStore, topic: str) -> list[set[int]]:
    """Return the replicas of each partition in the topic's znode."""
    [znode] = await store.read([paths.topic(topic)])
    assert znode is not None
    return [set(replicas) for replicas in json.loads(znode.data)["partitions"].values()]


async def exists(store: MetadataStore, path: str) -> bool:
    return not await is_gone(store, path)


@pytest.mark.soak
async def test_topics_created_while_no_controller_is_alive(cluster: RealCluster) -> None:
    async with open_zookeeper(cluster.zookeeper) as store:
        await create_without_a_controller(cluster, store)


async def create_without_a_controller(cluster: RealCluster, store: MetadataStore) -> None:
    """Have brokers create topics; the controller that finds them has another id than the one that brokers know."""
    cluster.controllers.kill(FIRST)
    found: list[bytes] = []
    written: list[Written] = []

    async def work() -> None:
        written.append(await write(cluster.bootstrap, TOPIC, RECORDS))
        found.extend(await read(cluster.bootstrap, TOPIC, "readers"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        nursery.start_soon(read, cluster.bootstrap, TOPIC, "early readers")
        for topic in (TOPIC, OFFSETS):
            await until(partial(exists, store, paths.topic(topic)))
        placed = await replicas_of(store, OFFSETS)
        assert any(FIRST in replicas for replicas in placed), placed
        assert await is_gone(store, paths.topic_partitions(OFFSETS)), "nobody elects"
        since = trio.current_time()
        cluster.controllers.start(SECOND)
    seconds = trio.current_time() - since
    for topic in (TOPIC, OFFSETS):
        assert {1, 2, 3} == set.union(*await replicas_of(store, topic))
        assert {len(replicas) for replicas in await replicas_of(store, topic)} == {3}
        await cluster.until_in_sync(topic)
    assert sorted(found) == sorted(written[0].values)
    assert len(found) == RECORDS
    require_standbys(cluster)
    number = sum(FIRST in replicas for replicas in placed)
    sys.stdout.write(f"{number} of {len(placed)} partitions of {OFFSETS} were placed on the dead controller\n")
    sys.stdout.write(f"{RECORDS} written and read {seconds:.1f} s after the start of another\n")
