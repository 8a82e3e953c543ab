"""What only brokers of old releases need, on real ones."""

from __future__ import annotations

import sys

import pytest

from tests.kafka.expectations import require_all_read
from tests.kafka.real_cluster import RealCluster
from tests.kafka.traffic import until_more, writing

RECORDS = 1_000
MOST_SECONDS = 20.0
"""The brokers' replica.lag.time.max is 5 s. Without a higher epoch, 2.8.2 took 35 s."""


@pytest.mark.soak
@pytest.mark.parametrize("release", ["2.8.2", "2.7.2"], indirect=True)
async def test_records_are_acknowledged_while_a_follower_is_dead(cluster: RealCluster) -> None:
    # The leader takes the follower out of the ISR before its session ends, which its high watermark does not survive
    # before 3.1 (KAFKA-13091).
    await cluster.create("orders", (1, 2, 3), (2, 1, 3))
    async with writing(cluster.bootstrap, "orders") as orders:
        cluster.brokers[3].kill()
        await cluster.until_in_sync("orders", count=2, without=3)
        await until_more(orders, RECORDS)
    sys.stdout.write(f"the longest wait with a dead follower: {orders.longest_wait():.1f} s\n")
    assert orders.longest_wait() < MOST_SECONDS
    await require_all_read(cluster, "orders", orders)
