"""A topic's znodes are removed by hand: its logs are deleted, and a namesake takes its place; on sockets."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.admin.client import AdminClient
from klamm.cli.demo.clusters import log_dir
from klamm.cli.demo.load import DemoLoad
from klamm.cli.demo.scenario import ORDERS
from klamm.cli.demo.task_cluster import task_cluster
from tests.cluster.waiting import until
from tests.controller.meddler import delete_topic
from transport.messages import NewTopic
from transport.network import TcpNetwork
from transport.store import paths

REPLICAS = (1, 2, 3)


@pytest.mark.requirement("D8")
async def test_a_removed_topic_leaves_no_log_and_a_namesake_takes_its_place(tmp_path: Path) -> None:
    async with task_cluster(tmp_path) as cluster:
        admin = AdminClient(TcpNetwork(), [], cluster.store, 60)
        logs = [log_dir(tmp_path, broker_id) / str(ORDERS) for broker_id in REPLICAS]

        async def write(count: int) -> list[bytes]:
            await admin.create_topics([NewTopic(ORDERS.topic, 1, 3, (REPLICAS,))])
            brokers = (await admin.read_metadata()).brokers
            load = DemoLoad(TcpNetwork(), [(b.host, b.port) for b in brokers], ORDERS.topic)
            await load.fill(count, 10)
            return await load.read_back()

        async def is_gone() -> bool:
            return not any(log.exists() for log in logs) and await cluster.store.children([paths.STRAYS]) == [[]]

        await write(100)
        await cluster.store.multi(delete_topic(ORDERS.topic, 1))
        await until(is_gone)
        assert len(await write(20)) == 20
        assert all(log.exists() for log in logs)
