"""A broker that returns with an empty disk neither leads nor makes others truncate; real processes."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from broker.reference.log_dir import records_on_disk
from klamm.cli.demo.clusters import log_dir
from klamm.cli.demo.scenario import ORDERS
from tests.cluster.running import RealCluster
from tests.cluster.waiting import until
from transport.metadata import NO_LEADER

RECORDS = 100
PAIR = (1, 2)


@pytest.mark.requirement("D5")
async def test_the_last_in_sync_replica_lost_its_disk(zookeeper: str, tmp_path: Path) -> None:
    async with RealCluster.running(f"{zookeeper}/empty-disk", tmp_path, brokers=PAIR) as cluster:

        async def stands(leader: int, *isr: int) -> bool:
            state = await cluster.state()
            return (state.leader, state.isr) == (leader, isr)

        await cluster.create_topic(ORDERS.topic, PAIR)
        await (await cluster.load(ORDERS.topic)).fill(RECORDS, 100)

        cluster.processes[2].send_signal(signal.SIGTERM)
        await until(lambda: stands(1, 1))
        cluster.processes[1].send_signal(signal.SIGTERM)
        await until(lambda: stands(NO_LEADER, 1))
        for broker_id in PAIR:
            cluster.processes[broker_id].wait()
        shutil.rmtree(log_dir(tmp_path, 1))
        cluster.start_brokers(PAIR)
        await cluster.until_live(PAIR)
        await until(lambda: stands(NO_LEADER))
        assert len(records_on_disk(log_dir(tmp_path, 2), ORDERS)) == RECORDS
