"""The active controller's view of the progress of moves, in a whole cluster on virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio

from controller.node.service import ControllerService
from controller.progress.report import Totals
from examples.counter_service import APIS, CounterService
from simulator import scheduling
from simulator.cluster import SimulatedCluster, simulated_cluster
from simulator.scheduling import wall_clock_ms
from simulator.settings import Settings
from tests.controller.progress.moving import totals
from transport.messages import UNKNOWN, ReassignmentDescription

RECORDS = 400
SIZE = 1000
SLOW = Settings(brokers=4, fetch_bytes=4000, latency=0.1)
"""A follower copies a few records every 0.2 s: a move takes half a minute."""

Story = Callable[[SimulatedCluster], Awaitable[None]]


def tell(story: Story, settings: Settings = SLOW) -> None:
    """Run a story on a cluster in which orders-0 has much data to move from broker 1."""

    async def run() -> None:
        async with simulated_cluster(settings) as cluster:
            await cluster.create_topic("orders", [(1,)])
            if settings.service is None:
                await cluster.produce("orders-0", RECORDS * [b"x" * SIZE])
            await story(cluster)

    scheduling.run(run, seed=1)


def active(cluster: SimulatedCluster) -> ControllerService:
    assert cluster.active_controller is not None
    service = cluster.controllers[cluster.active_controller].service
    assert service is not None
    return service


def moves(cluster: SimulatedCluster) -> Totals:
    office = active(cluster).office
    return Totals() if office is None else totals(office.progress.progress, trio.current_time())


async def described(cluster: SimulatedCluster) -> ReassignmentDescription:
    [only] = (await cluster.admin.describe_reassignments()).values()
    return only


def asking(cluster: SimulatedCluster) -> list[str]:
    """Return the tasks that query brokers."""
    nurseries = [process.service._nursery for process in cluster.controllers.values() if process.service]  # noqa: SLF001
    return sorted(task.name for each in nurseries for task in each.child_tasks if task.name.startswith("progress-"))


@pytest.mark.requirement("B5")
def test_brokers_are_asked_while_something_moves_and_only_then() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await trio.sleep(5)
        assert (moves(cluster), asking(cluster)) == (Totals(), [])
        await cluster.reassign({"orders-0": (2, 3)})
        left: list[int] = []
        while len(left) < 5:
            await trio.sleep(3)
            left.append(moves(cluster).bytes_left)
        assert left == sorted(left, reverse=True)
        assert 0 < left[-1] < left[0] < 2 * RECORDS * (SIZE + 100)
        assert asking(cluster) == ["progress-1", "progress-2", "progress-3"]
        assert moves(cluster).stalled == 0
        predicted = trio.current_time() + moves(cluster).eta_ms / 1000
        began = trio.current_time()
        await cluster.until_moved("orders-0", within=120)
        assert (predicted - began) / 2 < trio.current_time() - began < 2 * (predicted - began)
        await trio.sleep(3)
        assert (moves(cluster), asking(cluster)) == (Totals(), [])
        assert cluster.durable.controller_epoch() == 1

    tell(story)


def test_a_target_that_stands_still_is_stalled_and_holds_up_nobody() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.reassign({"orders-0": (2, 3)})
        await trio.sleep(4)
        cluster.pause(3)
        before = moves(cluster)
        assert (before.moves, before.stalled) == (1, 0)
        await trio.sleep(12)
        assert moves(cluster).stalled == 1
        assert moves(cluster).bytes_left < before.bytes_left - 20 * SIZE, "what the other one gets is not known"
        told = await described(cluster)
        assert told.waits_for.startswith("broker 2: ")
        assert told.waits_for.endswith("; broker 3, which is not alive")
        assert (told.rate > 0, told.eta_ms) == (True, UNKNOWN)
        cluster.wake(3)
        await trio.sleep(5)
        assert moves(cluster).stalled == 0
        await cluster.until_moved("orders-0", within=120)

    tell(story)


def test_a_target_that_cannot_reach_its_leader_does_not_fetch() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.reassign({"orders-0": (2,)})
        await trio.sleep(6)
        cluster.isolate([1], [2])
        await trio.sleep(20)
        told = await described(cluster)
        assert told.waits_for.startswith("broker 2, which does not fetch from leader 1: ")
        now_ms = wall_clock_ms()
        assert now_ms - 24_000 <= told.stalled_since_ms < now_ms - 10_000
        cluster.heal()
        await cluster.until_moved("orders-0", within=120)

    tell(story)


@pytest.mark.parametrize("silent", [1, 3])
def test_a_broker_that_the_controller_cannot_reach_is_silent(silent: int) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.reassign({"orders-0": (3,)})
        await trio.sleep(4)
        cluster.isolate([101, 102], [silent])
        await trio.sleep(15)
        told = await described(cluster)
        text = "and leader 1 does not answer" if silent == 1 else "broker 3, which does not answer: it was "
        assert text in told.waits_for
        assert (told.stalled_since_ms == UNKNOWN) == (silent == 1), "that a log grows tells that its leader is well"
        cluster.heal()
        await trio.sleep(10)
        assert "answer" not in (await described(cluster)).waits_for

    tell(story)


@pytest.mark.requirement("B5")
def test_bytes_fall_only_with_a_reason() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.reassign({"orders-0": (2,)})
        await trio.sleep(8)
        before = await described(cluster)
        assert before.setback == ""
        cluster.restart(2, wipe=True)
        await trio.sleep(8)
        after = await described(cluster)
        assert after.progress[0].log_bytes < before.progress[0].log_bytes
        assert after.setback == "broker 2 came back with an empty disk"
        await cluster.reassign({"orders-0": (3, 4)})
        await trio.sleep(3)
        assert (await described(cluster)).setback == "its target was changed from [2] to [3, 4]"
        await cluster.until_moved("orders-0", within=120)

    tell(story)


def test_the_next_controller_begins_anew() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.reassign({"orders-0": (2, 3)})
        await trio.sleep(6)
        assert moves(cluster).rate > 0
        before, first = moves(cluster).bytes_left, cluster.active_controller
        assert first is not None
        cluster.crash(first)
        await cluster.until(lambda: cluster.active_controller not in (None, first))
        assert moves(cluster).rate == UNKNOWN
        await trio.sleep(6)
        assert 0 < moves(cluster).bytes_left < before
        assert moves(cluster).rate > 0

    tell(story)


def test_a_controller_that_loses_its_office_asks_nobody() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.reassign({"orders-0": (2, 3)})
        await trio.sleep(3)
        first = active(cluster)
        assert asking(cluster) == ["progress-1", "progress-2", "progress-3"]
        controller_id = cluster.active_controller
        assert controller_id is not None
        cluster.disconnect(controller_id)
        await cluster.until(lambda: cluster.active_controller not in (None, controller_id))
        cluster.reconnect(controller_id)
        await trio.sleep(4)
        assert moves(cluster).bytes_left > 0
        assert asking(cluster) == ["progress-1", "progress-2", "progress-3"], "one controller asks"
        assert first is not active(cluster)
        assert await first.moves() == Totals()

    tell(story)


def test_a_service_that_says_no_sizes_is_asked_rarely_and_never_stalled() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        cluster.isolate([1], [2])
        await cluster.reassign({"orders-0": (2,)})
        await trio.sleep(40)
        assert moves(cluster) == Totals(moves=1)

    tell(story, Settings(brokers=2, service=CounterService, own_apis=APIS))


@pytest.mark.parametrize("seed", [7])
def test_it_can_be_replayed(seed: int) -> None:
    async def run() -> str:
        async with simulated_cluster(SLOW, seed=seed) as cluster:
            await cluster.create_topic("orders", [(1,)])
            await cluster.produce("orders-0", RECORDS * [b"x" * SIZE])
            await cluster.reassign({"orders-0": (2, 3)})
            await trio.sleep(6)
            return f"{moves(cluster)} {cluster.trace.digest}"

    runs = [scheduling.run(partial(run), seed=seed) for _ in range(2)]
    assert runs[0] == runs[1]
