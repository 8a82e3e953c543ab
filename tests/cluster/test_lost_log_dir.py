"""A broker loses one of two log directories: others lead the lost replicas, the rest stays; real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from klamm.cli.demo.clusters import log_dir
from klamm.cli.demo.process_cluster import ProcessCluster
from tests.cluster.running import RealCluster
from tests.cluster.waiting import until
from transport.messages import PartitionState
from transport.store import paths

BROKERS = (1, 2, 3)
RECORDS = 50


def start_broker(cluster: ProcessCluster, broker_id: int) -> None:
    directories = ",".join(str(log_dir(cluster.data_dir, broker_id) / name) for name in "ab")
    cluster.start(broker_id, "klamm", "broker", "run", "--log-dirs", directories)


@pytest.mark.requirement("D9")
async def test_a_lost_directory_costs_its_own_replicas_only_until_it_is_back(zookeeper: str, tmp_path: Path) -> None:
    async with RealCluster.running(f"{zookeeper}/lost-log-dir", tmp_path) as cluster:
        for broker_id in BROKERS:
            start_broker(cluster, broker_id)
        await cluster.until_live(BROKERS)

        async def states() -> list[PartitionState]:
            return sorted((await cluster.admin.read_metadata()).partitions, key=lambda s: s.topic)

        async def stand(*expected: tuple[int, set[int], tuple[int, ...]]) -> bool:
            return [(s.leader, set(s.isr), s.offline_replicas) for s in await states()] == [*expected]

        async def write(topic: str) -> list[bytes]:
            load = await cluster.load(topic)
            await load.fill(RECORDS, 10)
            return await load.read_back()

        # One after the other, so that they go into one directory each.
        for name, replicas in (("here", (2, 1)), ("there", (2, 3))):
            await cluster.create_topic(name, replicas)
            assert len(await write(name)) == RECORDS
        lost, kept = log_dir(tmp_path, 2) / "a", log_dir(tmp_path, 2) / "b"
        assert ((lost / "here-0").exists(), (kept / "there-0").exists()) == (True, True)

        lost.rename(lost.with_suffix(".away"))
        lost.write_text("not even root can make a directory of this")
        await until(lambda: stand((1, {1}, (2,)), (2, {2, 3}, ())))
        assert [s.leader_epoch for s in await states()][1] == 0, "nobody touched what was in the other directory"
        assert await cluster.store.children([paths.LOG_DIR_EVENT_NOTIFICATION]) == [[]]
        assert len(await write("here")) == 2 * RECORDS
        assert len(await write("there")) == 2 * RECORDS

        lost.unlink()
        lost.with_suffix(".away").rename(lost)
        await cluster.kill(2)
        start_broker(cluster, 2)
        await until(lambda: stand((1, {1, 2}, ()), (3, {2, 3}, ())))
