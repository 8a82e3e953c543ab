"""A broker that cannot open the log of a replica does not lead it until it can; on sockets."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.admin.client import AdminClient
from klamm.cli.demo.clusters import log_dir
from klamm.cli.demo.scenario import ORDERS, reassign
from klamm.cli.demo.task_cluster import task_cluster
from tests.cluster.waiting import until
from transport.messages import NewTopic, PartitionState
from transport.network import TcpNetwork


@pytest.mark.requirement("D9")
async def test_a_leader_that_cannot_open_its_log_is_replaced_until_it_can(tmp_path: Path) -> None:
    async with task_cluster(tmp_path) as cluster:
        admin = AdminClient(TcpNetwork(), [], cluster.store, 60)
        in_the_way = log_dir(tmp_path, 2) / str(ORDERS)
        in_the_way.write_text("no directory")

        async def state() -> PartitionState | None:
            return next(iter((await admin.read_metadata([ORDERS.topic])).partitions), None)

        async def is_led_by_another() -> bool:
            now = await state()
            return now is not None and (now.leader, now.isr, now.offline_replicas) == (1, (1, 3), (2,))

        async def is_whole_again() -> bool:
            now = await state()
            return now is not None and (set(now.isr), now.offline_replicas) == ({1, 2, 3}, ())

        await admin.create_topics([NewTopic(ORDERS.topic, 1, 3, ((2, 1, 3),))])
        await until(is_led_by_another)
        in_the_way.unlink()
        # The same replicas in another order: all of them are told.
        await reassign(admin, {ORDERS: (1, 2, 3)})
        await until(is_whole_again)
