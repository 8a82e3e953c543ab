"""A broker that comes back with an empty disk does not lead, and what others have is not cut down to nothing; real."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from broker.reference.log_dir import records_on_disk
from controller.admin.client import AdminClient
from klamm.cli.demo.clusters import CONTROLLERS, log_dir
from klamm.cli.demo.load import Load
from klamm.cli.demo.process_cluster import ProcessCluster, stopping
from klamm.cli.demo.scenario import ORDERS
from tests.cluster.waiting import until, until_controller
from transport.messages import NewTopic
from transport.metadata import NO_LEADER
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.zookeeper import open_zookeeper

RECORDS = 100
PAIR = (1, 2)


@pytest.mark.requirement("D5")
async def test_the_last_in_sync_replica_lost_its_disk(zookeeper: str, tmp_path: Path) -> None:
    address = f"{zookeeper}/empty-disk"
    async with open_zookeeper(address) as store, stopping(ProcessCluster(store, tmp_path, address)) as cluster:
        cluster.start(CONTROLLERS[0], "klamm", "controller", "run")
        cluster.start_brokers(PAIR)
        await until_controller(store, CONTROLLERS[0])
        admin = AdminClient(TcpNetwork(), [], store, 60)

        async def stands(leader: int, *isr: int) -> bool:
            [znode] = await store.read([paths.partition_state(ORDERS)])
            assert znode is not None
            state = formats.decode_partition_state(ORDERS, znode.data, znode.stat.version)
            return (state.leader, state.isr) == (leader, isr)

        async def both_live() -> bool:
            return [broker.id for broker in (await admin.read_metadata()).brokers] == [*PAIR]

        await until(both_live)
        await admin.create_topics([NewTopic(ORDERS.topic, 1, 2, (PAIR,))])
        brokers = (await admin.read_metadata()).brokers
        await Load(TcpNetwork(), [(b.host, b.port) for b in brokers], ORDERS.topic).fill(RECORDS, 100)

        cluster.processes[2].send_signal(signal.SIGTERM)
        await until(lambda: stands(1, 1))
        cluster.processes[1].send_signal(signal.SIGTERM)
        await until(lambda: stands(NO_LEADER, 1))
        for broker_id in PAIR:
            cluster.processes[broker_id].wait()
        shutil.rmtree(log_dir(tmp_path, 1))
        cluster.start_brokers(PAIR)
        await until(both_live)
        await until(lambda: stands(NO_LEADER))
        assert len(records_on_disk(log_dir(tmp_path, 2), ORDERS)) == RECORDS
