"""A broker loses one of its two log directories: what was there is led by others, the rest stays; real."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from controller.admin.client import AdminClient
from klamm.cli.demo.clusters import CONTROLLERS, log_dir
from klamm.cli.demo.load import Load
from klamm.cli.demo.process_cluster import ProcessCluster, stopping
from tests.cluster.waiting import until, until_controller
from transport.messages import NewTopic, PartitionState
from transport.network import TcpNetwork
from transport.store import paths
from transport.store.zookeeper import open_zookeeper

BROKERS = (1, 2, 3)
RECORDS = 50


def start_broker(cluster: ProcessCluster, broker_id: int) -> None:
    directories = ",".join(str(log_dir(cluster.data_dir, broker_id) / name) for name in "ab")
    cluster.start(broker_id, "klamm", "broker", "run", "--log-dirs", directories)


@pytest.mark.requirement("D9")
async def test_a_lost_directory_costs_its_own_replicas_only_until_it_is_back(zookeeper: str, tmp_path: Path) -> None:
    address = f"{zookeeper}/lost-log-dir"
    async with open_zookeeper(address) as store, stopping(ProcessCluster(store, tmp_path, address)) as cluster:
        cluster.start(CONTROLLERS[0], "klamm", "controller", "run")
        for broker_id in BROKERS:
            start_broker(cluster, broker_id)
        await until_controller(store, CONTROLLERS[0])
        admin = AdminClient(TcpNetwork(), [], store, 60)

        async def all_live() -> bool:
            return [broker.id for broker in (await admin.read_metadata()).brokers] == [*BROKERS]

        async def states() -> list[PartitionState]:
            return sorted((await admin.read_metadata()).partitions, key=lambda s: s.topic)

        async def stand(*expected: tuple[int, set[int], tuple[int, ...]]) -> bool:
            return [(s.leader, set(s.isr), s.offline_replicas) for s in await states()] == [*expected]

        async def write(topic: str) -> list[bytes]:
            brokers = (await admin.read_metadata()).brokers
            load = Load(TcpNetwork(), [(b.host, b.port) for b in brokers], topic)
            await load.fill(RECORDS, 10)
            return await load.read_back()

        await until(all_live)
        # One after the other, so that they go into one directory each.
        for name, replicas in (("here", (2, 1)), ("there", (2, 3))):
            await admin.create_topics([NewTopic(name, 1, 2, (replicas,))])
            assert len(await write(name)) == RECORDS
        lost, kept = log_dir(tmp_path, 2) / "a", log_dir(tmp_path, 2) / "b"
        assert ((lost / "here-0").exists(), (kept / "there-0").exists()) == (True, True)

        lost.rename(lost.with_suffix(".away"))
        lost.write_text("not even root can make a directory of this")
        await until(lambda: stand((1, {1}, (2,)), (2, {2, 3}, ())))
        assert [s.leader_epoch for s in await states()][1] == 0, "nobody touched what was in the other directory"
        assert await store.children([paths.LOG_DIR_EVENT_NOTIFICATION]) == [[]]
        assert len(await write("here")) == 2 * RECORDS
        assert len(await write("there")) == 2 * RECORDS

        lost.unlink()
        lost.with_suffix(".away").rename(lost)
        cluster.processes[2].send_signal(signal.SIGKILL)
        cluster.processes[2].wait()
        start_broker(cluster, 2)
        await until(lambda: stand((1, {1, 2}, ()), (3, {2, 3}, ())))
