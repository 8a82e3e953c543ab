"""The office changes hands in the middle of moves, between Kafka's controller and ours, with real brokers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from tests.kafka.moves import begin, begin_under_kafka, create_held, fill, held, move_of, until_begun, until_moved
from tests.kafka.real_cluster import RealCluster, real_cluster
from tests.kafka.traffic import Written, read, until_more, writing
from transport.store.kafka_office import Writer, read_office
from transport.store.protocol import MetadataStore
from transport.store.zookeeper import open_zookeeper

BROKERS = (1, 2, 3, 4)
RECORDS_AFTER = 20


@pytest.mark.soak
async def test_a_move_is_finished_by_the_next_controller(zookeeper: str, tmp_path: Path, release: str) -> None:
    address = f"{zookeeper}/moves-{tmp_path.name}"
    running = real_cluster(address, tmp_path, release=release, broker_ids=BROKERS)
    async with running as cluster, open_zookeeper(address) as store:
        await create_held(cluster, "moved", 1, 2, 3)
        large = await fill(cluster, "moved")
        async with writing(cluster.bootstrap, "moved") as small:
            async with held(cluster, 4):
                await begin(cluster.admin, "moved", 2, 3, 4)
                await until_begun(store, "moved", 4, 1)
                await hand_over(store, cluster, "release", Writer.KAFKA, adding=4)
            await finish(store, cluster, small, (2, 3, 4), without=1)

            async with held(cluster, 1):
                await begin_under_kafka(store, "moved", 3, 4, 1)
                await until_begun(store, "moved", 1, 2)
                await hand_over(store, cluster, "take-over", Writer.KLAMM, adding=1)
            await finish(store, cluster, small, (3, 4, 1), without=2)
        found = await read(cluster.bootstrap, "moved", "readers")
        assert small.errors == []
        assert sorted(found) == sorted(large.values + small.values)
        said = f"{len(found)} acknowledged and read once, one waited for {small.longest_wait():.1f} s"
        sys.stdout.write(f"two moves across handovers: {said}\n")


async def hand_over(store: MetadataStore, cluster: RealCluster, command: str, writer: Writer, *, adding: int) -> None:
    """Give the office to the next controller, which finds a move in the middle."""
    before, since = await move_of(store, "moved"), trio.current_time()
    await cluster.hand_over(command)
    after, znodes = await move_of(store, "moved"), await read_office(store)
    assert znodes.holder is not None
    assert znodes.holder.writer is writer
    assert (after.adding, after.removing, adding in after.isr) == (before.adding, before.removing, False)
    seconds = trio.current_time() - since
    sys.stdout.write(
        f"{command} in {seconds:.1f} s, epoch {znodes.epoch}, adds {after.adding}, removes {after.removing}\n"
    )


async def finish(
    store: MetadataStore, cluster: RealCluster, written: Written, replicas: Sequence[int], *, without: int
) -> None:
    """Wait until the move is over, and some records more are written."""
    since = trio.current_time()
    await until_moved(store, "moved", *replicas)
    await cluster.until_without_logs("moved", without)
    await until_more(written, RECORDS_AFTER)
    sys.stdout.write(f"moved to {replicas} in {trio.current_time() - since:.1f} s without the throttle\n")
