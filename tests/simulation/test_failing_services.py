"""Services that raise in become_leader or stop_replica, in stories that the matrix of failed replicas lacks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping

import pytest
import trio

from simulator import scheduling
from simulator.actions.processes import Crash, FailOrders, ObeyOrders, Restart
from simulator.actions.requests import CreateTopic, CreateTopics, Elect
from simulator.cluster import SimulatedCluster, simulated_cluster
from simulator.frames import control_request
from simulator.settings import Settings
from simulator.trace import Trace
from transport.messages import ElectionType, PartitionState, StopReplicaRequest
from transport.metadata import TopicPartition

Story = Callable[[SimulatedCluster], Awaitable[None]]

BROKERS = (1, 2, 3)
SETTINGS = Settings(
    brokers=3,
    first_controller=101,
    request_timeout=2.0,
    controller_timeout=2.0,
    fetch_wait=0.5,
    replica_lag_time=2.0,
    leader_rebalance_interval=3,
)
TP, OTHER = TopicPartition("orders", 0), TopicPartition("other", 0)
WITHIN = 30.0
"""Seconds within which a live member of the ISR must lead."""

WATCHED = 120.0
MINUTE = 60.0
MOST_ELECTIONS = 6


def tell(story: Story, settings: Settings = SETTINGS) -> Trace:
    """Run a story on a cluster with the topics orders and other, led by broker 1, and settle."""
    trace = Trace(keep_all=True)

    async def main() -> None:
        async with simulated_cluster(settings, trace=trace) as cluster:
            topics = (CreateTopic("orders", ((1, 2, 3),)), CreateTopic("other", ((1, 2, 3),)))
            await CreateTopics(topics).on(cluster)
            for name in ("orders-0", "other-0"):
                await cluster.produce(name, [b"first"])
            await story(cluster)
            await cluster.settle()

    scheduling.run(main, seed=1)
    return trace


def state_of(cluster: SimulatedCluster, tp: TopicPartition = TP) -> PartitionState:
    state = cluster.partition(str(tp))
    assert state is not None
    return state


async def takes_records(cluster: SimulatedCluster, tp: TopicPartition = TP, within: float = WITHIN) -> bool:
    """Return whether a leader takes a record in time."""
    with trio.move_on_after(within):
        await cluster.produce(str(tp), [b"another"])
        return True
    return False


async def epochs(cluster: SimulatedCluster, seconds: float) -> list[float]:
    """Watch a partition; return the times at which its leader changed or its epoch rose."""
    times, known = [], state_of(cluster).leader_epoch
    end = trio.current_time() + seconds
    while trio.current_time() < end:
        await trio.sleep(0.05)
        now = state_of(cluster).leader_epoch
        times += [trio.current_time()] * (now - known)
        known = now
    return times


def most_within_a_minute(times: list[float]) -> int:
    return max((sum(start <= time < start + MINUTE for time in times) for start in times), default=0)


def failing(brokers: tuple[int, ...]) -> Mapping[int | str, tuple[str, ...]]:
    return dict.fromkeys(brokers, (str(TP),))


def test_a_member_that_failed_once_leads_where_the_last_one_always_fails() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        FailOrders(failing((1, 2)), "become_leader", 1).on(cluster)
        FailOrders(failing((3,)), "become_leader").on(cluster)
        # Broker 2 fails once, then 1, then 3 each time.
        await Elect(ElectionType.PREFERRED, (), {str(TP): (2, 1, 3)}).on(cluster)
        assert await takes_records(cluster)
        assert state_of(cluster).leader in (1, 2)
        ObeyOrders(BROKERS).on(cluster)

    tell(story)


def test_a_new_partition_whose_first_leader_fails_is_led_by_another() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        FailOrders({1: ("new-0",)}, "become_leader").on(cluster)
        await CreateTopics((CreateTopic("new", ((1, 2, 3),)),)).on(cluster)
        await cluster.produce("new-0", [b"taken"])
        assert state_of(cluster, TopicPartition("new", 0)).leader == 2
        ObeyOrders(1).on(cluster)

    tell(story)


@pytest.mark.parametrize("times", [1, 3, None])
def test_a_stop_that_fails_is_repeated_while_its_broker_shuts_down(times: int | None) -> None:
    """The other replica of that broker is stopped once."""

    def stops(trace: Trace) -> Iterator[tuple[str, ...]]:
        for entry in trace.entries:
            if entry.kind == "frame" and isinstance(entry.what, bytes) and entry.where.endswith(">broker-3"):
                request = control_request(entry.what)
                if isinstance(request, StopReplicaRequest):
                    yield tuple(str(stop.tp) for stop in request.partitions if not stop.delete)

    async def story(cluster: SimulatedCluster) -> None:
        FailOrders({3: (str(TP),)}, "stop_replica", times).on(cluster)
        handle = cluster.brokers[3].handle
        assert handle is not None
        await handle.link.controlled_shutdown()
        await trio.sleep(60)
        assert set(state_of(cluster).isr) == {1, 2}
        ObeyOrders(3).on(cluster)
        Restart(3).on(cluster)

    sent = [tp for tps in stops(tell(story)) for tp in tps]
    assert sent.count(str(OTHER)) == 1
    assert sent.count(str(TP)) == (6 if times is None else times + 1), "after 2, 4, 8, 16 and 32 s"


def test_a_new_controller_learns_of_failures_again() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        FailOrders(failing((2,)), "become_leader").on(cluster)
        await Elect(ElectionType.PREFERRED, (), {str(TP): (2, 1, 3)}).on(cluster)
        assert await takes_records(cluster)
        active = cluster.active_controller
        assert active is not None
        Crash(active, noticed=True).on(cluster)
        assert await takes_records(cluster)
        assert state_of(cluster).leader != 2
        # The next controller tries once, after its first check, and then less and less often.
        assert most_within_a_minute(await epochs(cluster, WATCHED)) <= MOST_ELECTIONS
        ObeyOrders(2).on(cluster)

    tell(story)
