"""Processes whose event loop stands still: nothing of theirs runs, and the world around them does not wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio._core._run import Runner

from simulator import scheduling, suspension
from simulator.actions.processes import Crash, Pause, StopFetching, Suspend, Wake
from simulator.actions.requests import CreateTopic, CreateTopics
from simulator.cluster import SimulatedCluster, simulated_cluster
from simulator.settings import Settings

Story = Callable[[SimulatedCluster], Awaitable[None]]
SETTINGS = Settings(brokers=3, session_timeout=4.0, first_controller=101)


def tell(story: Story) -> None:
    """Run a story on a cluster."""

    async def main() -> None:
        async with simulated_cluster(SETTINGS) as cluster:
            await story(cluster)

    scheduling.run(main, seed=3)


def test_tasks_below_a_suspended_one_wait_and_those_beside_it_do_not() -> None:
    woke: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await trio.sleep(seconds)
        woke.append((name, trio.current_time()))

    async def family(*, task_status: trio.TaskStatus[trio.lowlevel.Task]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sleeper, "child", 1)
            nursery.start_soon(sleeper, "later child", 7)
            task_status.started(trio.lowlevel.current_task())

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            root = await nursery.start(family)
            suspension.suspend(root)
            nursery.start_soon(sleeper, "other", 2)
            await trio.sleep(5)
            suspension.resume(root)

    scheduling.run(main, seed=1)
    assert woke == [("other", 2), ("child", 5), ("later child", 7)]


def test_after_a_suspension_tasks_are_woken_as_before() -> None:
    async def main() -> None:
        usual, root = Runner.reschedule, trio.lowlevel.current_task()
        suspension.suspend(root)
        assert Runner.reschedule is not usual
        suspension.resume(root)
        assert Runner.reschedule is usual

    scheduling.run(main, seed=1)


def test_a_task_that_suspends_itself_stops_at_its_next_checkpoint() -> None:
    async def main() -> None:
        root = trio.lowlevel.current_task()

        async def resume_it_later() -> None:
            await trio.sleep(5)
            suspension.resume(root)

        trio.lowlevel.spawn_system_task(resume_it_later)
        await trio.sleep(1)
        suspension.suspend(root)
        await trio.lowlevel.checkpoint()
        assert trio.current_time() == 5

    scheduling.run(main, seed=2)


def test_a_suspended_controller_keeps_its_office_and_does_nothing() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await CreateTopics((CreateTopic("orders", ((1, 2, 3),)),)).on(cluster)
        Suspend(101).on(cluster)
        Crash(1, noticed=True).on(cluster)
        await trio.sleep(20)
        state = cluster.partition("orders-0")
        assert (cluster.active_controller, state and state.leader) == (101, 1)
        Wake(101).on(cluster)
        await trio.sleep(1)
        state = cluster.partition("orders-0")
        assert (cluster.active_controller, state and state.leader) == (101, 2)
        await cluster.settle()

    tell(story)


def test_a_suspended_controller_without_heartbeats_is_replaced_and_steps_down_when_it_wakes() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        Suspend(101, loses_session=True).on(cluster)
        await cluster.until(lambda: cluster.active_controller == 102, within=10)
        Wake(101).on(cluster)
        await trio.sleep(2)
        active = [id_ for id_, process in cluster.controllers.items() if process.service and process.service.is_active]
        assert active == [102]
        await cluster.settle()

    tell(story)


def test_a_suspended_node_can_crash_and_settling_wakes_one() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        Suspend((1, 101)).on(cluster)
        Crash(101).on(cluster)
        await cluster.settle()
        assert all(process.started.is_set() for process in cluster.processes())

    tell(story)


@pytest.mark.parametrize("pausing", [Pause(2), Suspend(2)])
def test_settling_lets_a_broker_fetch_again_that_does_not_run_just_then(pausing: Pause | Suspend) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await CreateTopics((CreateTopic("orders", ((1, 2),)),)).on(cluster)
        StopFetching({2: ("orders-0",)}).on(cluster)
        await cluster.produce("orders-0", [b"order"])
        state = cluster.partition("orders-0")
        assert state is not None
        assert state.isr == (1,)
        pausing.on(cluster)
        await cluster.settle()
        state = cluster.partition("orders-0")
        assert state is not None
        assert state.isr == (1, 2)

    tell(story)
