"""Nodes that answer errors or nothing, and brokers that take long for orders, in a whole cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
import trio

from simulator import scheduling
from simulator.actions.processes import AnswerRequests, Hesitate, ObeyOrders, RefuseOrders, RefuseRequests
from simulator.actions.requests import CreateTopic, CreateTopics, Elect
from simulator.actions.scene import CONTROLLER
from simulator.administration import partition_named
from simulator.cluster import SimulatedCluster, simulated_cluster
from simulator.frames import control_request
from simulator.settings import Settings
from simulator.trace import Trace
from transport.errors import ApiError, ErrorCode
from transport.messages import ElectionType, LeaderAndIsrRequest
from transport.wire import WireError

Story = Callable[[SimulatedCluster], Awaitable[None]]
SETTINGS = Settings(brokers=3, first_controller=101, request_timeout=2.0, controller_timeout=2.0, fetch_wait=0.5)
PREFERRED = Elect(ElectionType.PREFERRED, (), {"orders-0": (2, 3, 1)})
UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR


def tell(story: Story) -> Trace:
    """Run a story on a cluster with the topic orders, led by broker 1, and settle."""
    trace = Trace(keep_all=True)

    async def main() -> None:
        async with simulated_cluster(SETTINGS, trace=trace) as cluster:
            await CreateTopics((CreateTopic("orders", ((1, 2, 3),)),)).on(cluster)
            await cluster.produce("orders-0", [b"first"])
            await story(cluster)
            await cluster.settle()

    scheduling.run(main, seed=1)
    return trace


def leader(cluster: SimulatedCluster) -> int:
    state = cluster.partition("orders-0")
    assert state is not None
    return state.leader


async def is_led(cluster: SimulatedCluster, broker_id: int) -> bool:
    """Return whether a broker is the leader and takes records."""
    assert leader(cluster) == broker_id
    with trio.move_on_after(5):
        await cluster.produce("orders-0", [b"another"])
        return True
    return False


@pytest.mark.parametrize("error", [None, UNKNOWN])
def test_an_order_that_is_refused_is_not_carried_out(error: ErrorCode | None) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        RefuseRequests(2, "LeaderAndIsr", error).on(cluster)
        await PREFERRED.on(cluster)
        assert leader(cluster) == 2
        assert not await is_led(cluster, 2)
        AnswerRequests(2).on(cluster)
        ObeyOrders(2).on(cluster)
        await trio.sleep(5)
        assert await is_led(cluster, leader(cluster))

    tell(story)


def test_an_order_that_is_carried_out_but_not_answered_is_repeated() -> None:
    def copies(trace: Trace) -> int:
        """Return how often the order that makes broker 2 lead arrives there."""
        frames = [entry.what for entry in trace.entries if entry.kind == "frame" and entry.where.endswith(">broker-2")]
        orders = [order for frame in frames if isinstance(frame, bytes) and (order := control_request(frame))]
        numbers = [order.number for order in orders if isinstance(order, LeaderAndIsrRequest)]
        return max(Counter(numbers).values())

    async def story(cluster: SimulatedCluster) -> None:
        RefuseRequests(2, "LeaderAndIsr", carried_out=True).on(cluster)
        await PREFERRED.on(cluster)
        assert await is_led(cluster, 2)

    assert copies(tell(story)) > 1


def test_an_order_about_one_partition_is_refused_alone() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await CreateTopics((CreateTopic("other", ((1, 2, 3),)),)).on(cluster)
        RefuseOrders({2: ("orders-0",)}).on(cluster)
        await Elect(ElectionType.PREFERRED, (), {"orders-0": (2, 3, 1), "other-0": (2, 3, 1)}).on(cluster)
        await cluster.produce("other-0", [b"taken"])
        other = cluster.partition("other-0")
        assert other is not None
        assert (other.leader, other.leader_epoch) == (2, 1)
        # The replica failed, so another one leads.
        assert await is_led(cluster, 3)
        ObeyOrders(2).on(cluster)
        await trio.sleep(5)
        assert await is_led(cluster, 3)

    tell(story)


def test_a_broker_that_hesitates_obeys_in_the_end() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        Hesitate(2, 4.0).on(cluster)
        await PREFERRED.on(cluster)
        began = trio.current_time()
        await cluster.produce("orders-0", [b"late"])
        assert trio.current_time() - began > 3
        ObeyOrders(2).on(cluster)

    tell(story)


def test_a_controller_refuses_an_administrator() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        RefuseRequests(CONTROLLER, "ElectLeaders", UNKNOWN).on(cluster)
        with pytest.raises(ApiError, match="UNKNOWN_SERVER_ERROR"):
            await PREFERRED.on(cluster)
        assert leader(cluster) == 1
        RefuseRequests(CONTROLLER, "ElectLeaders", carried_out=True).on(cluster)
        with pytest.raises(WireError, match="may have been done"):
            await PREFERRED.on(cluster)
        assert leader(cluster) == 2

    tell(story)


@pytest.mark.parametrize(
    ("api", "error", "starts"),
    [
        ("LeaderAndIsr", ErrorCode.INVALID_REQUEST, 2),
        ("LeaderAndIsr", ErrorCode.STALE_BROKER_EPOCH, 2),
        ("LeaderAndIsr", UNKNOWN, 1),
        ("UpdateMetadata", ErrorCode.INVALID_REQUEST, 2),
        ("UpdateMetadata", UNKNOWN, 1),
        ("UpdateMetadata", None, 1),
    ],
)
def test_only_a_broker_that_lost_orders_for_good_restarts(api: str, error: ErrorCode | None, starts: int) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        RefuseRequests(2, api, error).on(cluster)
        await PREFERRED.on(cluster)
        await trio.sleep(1)

    trace = tell(story)
    assert [entry.where for entry in trace.entries if entry.what == "starts"].count("broker-2") == starts


def test_settling_ends_refusals_and_restarts_brokers_that_lost_orders() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        RefuseRequests((2, 3), ("LeaderAndIsr", "UpdateMetadata"), UNKNOWN).on(cluster)
        RefuseOrders({1: ("orders-0",)}, ErrorCode.KAFKA_STORAGE_ERROR).on(cluster)
        cluster.expire(1)
        await trio.sleep(3)

    tell(story)


def test_a_log_that_a_broker_calls_unusable_stays_so_when_the_broker_restarts() -> None:
    tp = partition_named("orders-0")

    async def story(cluster: SimulatedCluster) -> None:
        broker = cluster.brokers[3]
        RefuseOrders({3: ("orders-0",)}, ErrorCode.KAFKA_STORAGE_ERROR).on(cluster)
        broker.crash()
        broker.start()
        assert not broker.disk.is_healthy(tp)
        ObeyOrders(3).on(cluster)
        broker.crash()
        broker.start()
        assert broker.disk.is_healthy(tp)

    tell(story)
