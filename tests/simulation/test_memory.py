"""The active controller's memory is compared with the store at quiet points, and each difference is reported."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve
from msgspec.structs import replace

from controller.channels.broker_channels import BrokerChannels
from controller.model.context import ControllerContext
from controller.model.facts import PartitionsMoved, ReplicasMoved, StrayLeft
from controller.model.reassignment import ReassignmentIdentity
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from simulator import liveness, scheduling
from simulator.cluster import SimulatedCluster, simulated_cluster
from simulator.memory import Memory
from simulator.settings import Settings
from tests.controller.failures import log_lost
from transport.dynamic_configs import MIN_INSYNC_REPLICAS
from transport.metadata import ReplicaAssignment, Stray, TopicPartition
from transport.store.formats import TopicZnode

TP = TopicPartition("orders", 0)
STRAY = Stray("id", "orders", 0, 4)
Disturb = Callable[[ControllerContext], object]


def differences(disturb: Disturb) -> list[str]:
    """Return what is reported right after the memory of a cluster at rest was changed."""
    found: list[str] = []

    async def story() -> None:
        async with simulated_cluster(Settings(brokers=4)) as cluster:
            await cluster.create_topic("orders", [(1, 2, 3)])
            await cluster.alter_topics({"orders": {MIN_INSYNC_REPLICAS: "2"}})
            await cluster.until(lambda: not liveness.faults(cluster))
            memory = memory_of(cluster)
            disturb(memory.office.context)
            found.extend(memory.faults())

    scheduling.run(story, seed=1)
    return found


def memory_of(cluster: SimulatedCluster) -> Memory:
    process = cluster.controllers[cluster.active_controller or 0]
    assert process.service is not None
    assert process.service.office is not None
    safety = cluster.world.safety
    by_hand = safety.decisions.is_state_by_hand
    return Memory(process.service.office, process.service.queue_size(), cluster.durable, safety.exempt, by_hand)


def forgets_a_broker(context: ControllerContext) -> None:
    del context.brokers[4]


def forgets_a_topic(context: ControllerContext) -> None:
    del context.topics["orders"]


def has_another_assignment(context: ControllerContext) -> None:
    known = context.topics["orders"]
    context.topics["orders"] = evolve(known, znode=TopicZnode({0: ReplicaAssignment((1, 2))}, known.znode.topic_id))


def has_an_earlier_version(context: ControllerContext) -> None:
    context.topics["orders"] = evolve(context.topics["orders"], version=-1)


def has_another_isr(context: ControllerContext) -> None:
    context.leadership[TP] = replace(context.leadership[TP], isr=(1, 2))


def takes_it_to_be_offline(context: ControllerContext) -> None:
    context.apply(PartitionsMoved([TP], PartitionPhase.OFFLINE))


def takes_it_to_be_moving(context: ControllerContext) -> None:
    context.reassigning[TP] = ReassignmentIdentity(1, 1)


def takes_a_replica_to_be_offline(context: ControllerContext) -> None:
    context.apply(ReplicasMoved.on(2, [TP], ReplicaPhase.OFFLINE))


@pytest.mark.parametrize(
    ("disturb", "text"),
    [
        (forgets_a_broker, "the controller remembers None of broker 4, not BrokerRegistration(id=4"),
        (forgets_a_broker, "the controller has channels to [1, 2, 3, 4], not to [1, 2, 3]"),
        (forgets_a_topic, "the controller remembers None of topic orders, not (TopicZnode"),
        (has_another_assignment, "ReplicaAssignment(replicas=(1, 2), adding_replicas=(), removing_replicas=())"),
        (has_an_earlier_version, ", -1) of topic orders, not (TopicZnode("),
        (has_another_isr, "isr=(1, 2), partition_epoch=0"),
        (takes_it_to_be_offline, "takes orders-0 to be PartitionPhase.OFFLINE, not PartitionPhase.ONLINE"),
        (takes_it_to_be_moving, "the controller takes ['orders-0'] to be moving, not []"),
        (takes_a_replica_to_be_offline, "orders-0 on broker 2 to be ReplicaPhase.OFFLINE, not ReplicaPhase.ONLINE"),
        (lambda c: c.deletions.update(orders=None), "the controller remembers deletions of ['orders']"),
        (lambda c: c.strays.take(StrayLeft(STRAY), ()), "the controller remembers strays of ['orders']"),
        (lambda c: c.strays.failed.update({STRAY: None}), "the controller remembers strays of ['orders']"),
        (lambda c: c.strays.recalled.update({(TP, 1): None}), "remembers recalled replicas of ['orders']"),
        (lambda c: c.apply(log_lost(TP, 1)), "failed replicas of ['orders']"),
        (lambda c: c.closed_topics.update(orders=None), "the controller remembers closed topics of ['orders']"),
        (lambda c: c.min_isrs.update(gone=2), "the controller remembers the settings of ['gone']"),
        (lambda c: c.min_isrs.update(orders=1), "takes min.insync.replicas of topic orders to be 1, not 2"),
        (lambda c: c.shutting_down.update({1: None}), "takes brokers [1] to be shutting down"),
    ],
)
def test_a_memory_that_differs_from_the_store_is_reported(disturb: Disturb, text: str) -> None:
    assert any(text in line for line in differences(disturb))


def test_a_controller_that_remembers_everything_is_not_reported() -> None:
    assert differences(lambda _: None) == []


def test_what_waits_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BrokerChannels, "queue_sizes", lambda _: {1: 0, 2: 7})

    async def story() -> None:
        async with simulated_cluster(Settings(brokers=2)) as cluster:
            found = list(evolve(memory_of(cluster), waiting=3).faults())
            assert "3 events wait in the controller's queue" in found
            assert "7 entries wait for broker 2" in found

    scheduling.run(story, seed=1)
