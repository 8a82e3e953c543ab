"""The model objects to each wrong decision that is planted in the controller, and to none without."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import pytest
import trio

from simulator import scheduling
from simulator.cluster import SimulatedCluster, simulated_cluster
from simulator.safety.invariants import DECISIONS, Violation
from simulator.settings import Settings, host_of
from simulator.steps import ControllerStep, Moment
from tests.simulation.wrong_decisions import BUGS, planted
from transport.dynamic_configs import MIN_INSYNC_REPLICAS
from transport.errors import ApiError
from transport.messages import AlterPartitionItem, AlterPartitionRequest, ElectionType
from transport.metadata import ReplicaAssignment
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.protocol import Create

SETTINGS: Final = Settings(brokers=6, first_controller=101)
ROWS: Final = [(1, 2, 3), (2, 3, 4), (3, 1, 2), (4, 1, 2)]


Story = Callable[[SimulatedCluster], Awaitable[None]]


async def tour(cluster: SimulatedCluster) -> None:
    """Take a cluster through every kind of decision."""
    await elect_and_shut_down(cluster)
    await move(cluster)
    await change_plans(cluster)
    await lose_a_directory(cluster)
    await face_a_dead_broker(cluster)


def violation(story: Story = tour) -> Violation | None:
    """Return what the checks object to in a story."""

    async def run() -> None:
        async with simulated_cluster(SETTINGS) as cluster:
            await cluster.create_topic("t", ROWS)
            await story(cluster)
            await cluster.settle()

    try:
        scheduling.run(run, seed=1)
    except Violation as found:
        return found
    return None


async def elect_and_shut_down(cluster: SimulatedCluster) -> None:
    await cluster.stop(2)
    cluster.restart(2)
    await cluster.settle()
    await cluster.elect_leaders(ElectionType.PREFERRED)
    await cluster.elect_leaders(ElectionType.PREFERRED, ["t-0"])
    for broker_id in (1, 2):
        cluster.crash(broker_id)
        await trio.sleep(15)
        cluster.restart(broker_id)
        await cluster.settle()
    await cluster.elect_leaders(ElectionType.PREFERRED, orders={"t-2": (1, 3, 2)})


async def move(cluster: SimulatedCluster) -> None:
    leader = cluster.partition("t-1")
    assert leader is not None
    keep_out(cluster, "t-0", 6)
    await cluster.reassign({"t-0": (6, 5, 4), "t-1": (5, leader.leader)})
    await cluster.until(lambda: is_isr(cluster, "t-0", (1, 2, 3, 4, 5)), what="the ISR of t-0")
    keep_out(cluster, "t-0")
    await cluster.until_moved("t-0")
    await cluster.until_moved("t-1")
    await cluster.add_partitions("t", 6)
    cluster.depose()
    await cluster.settle()


async def change_plans(cluster: SimulatedCluster) -> None:
    keep_out(cluster, "t-2", 5)
    await cluster.reassign({"t-2": (5, 3, 1)})
    await trio.sleep(2)
    await cluster.reassign({"t-2": (3, 1)})
    await cluster.until_moved("t-2")
    await cluster.alter_topics({"t": {MIN_INSYNC_REPLICAS: "2"}})
    await trio.sleep(61)  # until no controller may use the former value
    keep_out(cluster, "t-3", 1, 2, 6)
    await cluster.reassign({"t-3": (6, 5, 4)})
    await cluster.until(lambda: is_isr(cluster, "t-3", (4, 5)), what="the ISR of t-3")
    await cluster.cancel("t-3")
    keep_out(cluster, "t-3")
    await cluster.until_moved("t-3")


async def lose_a_directory(cluster: SimulatedCluster) -> None:
    await cluster.create_topic("logs", [(2, 1, 3), (2, 3, 1)])
    await cluster.until(lambda: is_isr(cluster, "logs-0", (1, 2, 3)), what="the ISR of logs-0")
    cluster.brokers[2].fail_log_dir(0, noticed=True)
    await trio.sleep(20)
    await cluster.settle()


async def face_a_dead_broker(cluster: SimulatedCluster) -> None:
    cluster.crash(6)
    await trio.sleep(15)
    with suppress(ApiError):
        await cluster.reassign({"t-1": (1, 6)})
    topic = TopicZnode({0: ReplicaAssignment((6, 1, 2))}, "id-of-late")
    cluster.world.ensemble.commit_by_hand([Create(paths.topic("late"), formats.encode_topic(topic))])
    await cluster.until(lambda: cluster.partition("late-0") is not None)
    with suppress(ApiError):
        await cluster.elect_leaders(ElectionType.PREFERRED, ["late-0"])
    await propose(cluster, "late-0", 6)


async def propose(cluster: SimulatedCluster, name: str, broker_id: int) -> None:
    """Ask for an ISR with one more broker, in the name of the leader."""
    now, controller = cluster.partition(name), cluster.active_controller
    assert now is not None
    assert controller is not None
    isr = (*now.isr, broker_id)
    item = AlterPartitionItem(now.topic, now.topic_id, now.partition, now.leader_epoch, isr, now.partition_epoch)
    broker_epoch = cluster.durable.brokers()[now.leader].epoch
    await cluster.ask(controller, AlterPartitionRequest(now.leader, broker_epoch, (item,)))


def keep_out(cluster: SimulatedCluster, name: str, *followers: int) -> None:
    state = cluster.partition(name)
    assert state is not None
    for broker in cluster.brokers.values():
        broker.neglect.kept_out[state.tp] = followers


def is_isr(cluster: SimulatedCluster, name: str, isr: tuple[int, ...]) -> bool:
    state = cluster.partition(name)
    return state is not None and sorted(state.isr) == sorted(isr)


async def lose_the_session_in_an_event(cluster: SimulatedCluster) -> None:
    """End the session of a new controller as it decides what follows from a broker's death."""

    def is_about_to_replace(step: ControllerStep) -> bool:
        return (step.event, step.round, step.moment) == ("Failover", "leave", Moment.DECIDED)

    def strike(step: ControllerStep) -> None:
        # The write is under way when the session ends, and its answer when the controller hears of that.
        cluster.world.ensemble.set_latency(host_of(step.controller_id), 0.5)
        cluster.expire(step.controller_id)

    await cluster.until(lambda: is_isr(cluster, "t-0", (1, 2, 3)), what="the first leader")
    cluster.at(is_about_to_replace, strike)
    cluster.crash(101)
    cluster.expire(101)
    cluster.crash(1)
    cluster.expire(1)
    await trio.sleep(20)


def test_an_event_that_the_end_of_a_session_cancels_owes_nothing() -> None:
    assert violation(lose_the_session_in_an_event) is None


def test_the_model_agrees_with_the_controller() -> None:
    assert violation() is None


@pytest.mark.parametrize("name", BUGS)
def test_the_model_objects_to_a_wrong_decision(name: str) -> None:
    with planted(name):
        found = violation()
    assert found is not None
    assert found.invariant == DECISIONS, str(found)
