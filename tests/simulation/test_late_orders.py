"""Orders to simulated brokers of Kafka's that arrive on a connection that their controller has given up."""

from __future__ import annotations

import pytest
import trio

from klamm.testing import open_cluster
from klamm.testing.actions import DelayRequest, ResumeFetching, StopFetching
from simulator.cluster import SimulatedCluster
from simulator.frames import describe_frame
from simulator.kafka.late_orders import Latest

pytestmark = pytest.mark.usefixtures("autojump_clock")

CONTROLLER, RELEASES = 101, ("3.9",)


def test_an_order_is_late_once_a_newer_connection_has_brought_one() -> None:
    latest = Latest[str]()
    assert [latest.admit("a", number) for number in (1, 1, 3, 2, 3)] == [True, True, True, False, True]
    assert latest.admit("b", 2)


async def test_a_late_order_does_not_bring_back_a_deleted_replica() -> None:
    async with open_cluster(brokers=2, controllers=1, releases=RELEASES) as cluster:
        late = DelayRequest(CONTROLLER, receivers=2, seconds=3.0, breaks=True, api="LeaderAndIsr")
        late.on(cluster)
        await cluster.create_topic("orders", [(1, 2)])
        await cluster.until(lambda: bool(cluster.brokers[2].disk.logs))
        await cluster.delete_topic("orders")
        await cluster.until(lambda: not cluster.brokers[2].disk.logs)
        assert requests(cluster, 2, "LeaderAndIsr") == 1
        await trio.sleep(4.0)
        assert requests(cluster, 2, "LeaderAndIsr") == 2
        assert not cluster.brokers[2].disk.logs
        await cluster.settle()


async def test_a_connection_that_brings_no_orders_ends_no_other() -> None:
    async with open_cluster(brokers=2, controllers=1, releases=RELEASES) as cluster:
        await cluster.create_topic("orders", [(1,)])
        await cluster.produce("orders-0", [b"paid"])
        connections, asked = requests(cluster, 2, "ApiVersions"), requests(cluster, 2, "DescribeConfigs")
        assert (connections, asked) == (2, 2)  # the checks before the election, and the channel
        StopFetching({2: ("orders-0",)}).on(cluster)
        await cluster.reassign({"orders-0": (2,)})
        await trio.sleep(5.0)  # the controller asks broker 2 how far its copy is, on a connection of its own
        ResumeFetching({2: ("orders-0",)}).on(cluster)
        await cluster.until_moved("orders-0")
        await cluster.settle()
        assert requests(cluster, 2, "ApiVersions") > connections
        assert requests(cluster, 2, "DescribeConfigs") == asked


def requests(cluster: SimulatedCluster, broker_id: int, api: str) -> int:
    """Return how many requests of an api a broker has been sent by its controller."""
    where = f"controller-{CONTROLLER}>broker-{broker_id}"
    frames = [each.what for each in cluster.trace.entries if each.where == where and isinstance(each.what, bytes)]
    return sum(f" {api} v" in describe_frame(frame) for frame in frames)
