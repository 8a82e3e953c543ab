"""Brokers of Kafka's hear of a topic's replica once they have deleted that of an earlier topic of the same name."""

from __future__ import annotations

import pytest
from attrs import evolve
from structlog.testing import capture_logs

from controller.config import ControllerConfig
from controller.events import (
    AutoPreferredReplicaLeaderElection,
    BrokerChange,
    PartitionModifications,
    ReplicasNotDeleted,
    StrayDeletion,
    TopicChange,
)
from controller.handlers.metadata import describe_topics
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from tests.controller.conftest import ENDPOINT, TP, Bench
from tests.controller.deletions import create, deleted, obeyed, replica, strays
from tests.kit import kafka_registrations
from transport.messages import WaitingReplica
from transport.metadata import NO_LEADER, Listener
from transport.store import paths
from transport.store.protocol import Create

LATER = "id-of-a-later-topic"


async def recreate(bench: Bench, *later: int, is_kafkas: bool = True) -> None:
    """Delete a topic of brokers 1 and 2 by hand, create another of that name, and let the controller see it.

    That one has its replicas on the same brokers, or on others.
    """
    bench.context.config = ControllerConfig(ENDPOINT.id, kafka=is_kafkas)
    for broker_id in (1, 2) if is_kafkas else ():
        await kafka_registrations.register(bench.store, broker_id, Listener("PLAINTEXT", "h", 9092))
    await bench.start((1, 2), brokers=() if is_kafkas else (1, 2))
    await bench.delete_topic("orders", 1)
    await bench.handle(TopicChange())
    await create(bench, LATER, *(later or (1, 2)))
    bench.seen.clear()
    await bench.handle(TopicChange())


def told(bench: Bench) -> list[tuple[int, bool]]:
    """List who was told to lead or follow: broker, and whether the replica is new."""
    return [(id_, order.is_new) for order in bench.seen.leader_and_isr() for id_ in order.brokers]


async def test_the_later_replica_starts_once_the_earlier_one_is_deleted(bench: Bench) -> None:
    await recreate(bench)
    assert bench.context.partition_phases[TP] is PartitionPhase.NEW
    assert told(bench) == []
    await deleted(bench, replica(2))
    assert await bench.leader_and_isr() == (2, (2,))
    assert bench.seen.latest_metadata(TP).offline_replicas == (1,)
    assert told(bench) == [(2, True)]
    await deleted(bench, replica(1))
    assert told(bench) == [(2, True), (1, True)]
    assert bench.seen.latest_metadata(TP).offline_replicas == ()
    [order, _] = bench.seen.leader_and_isr()
    assert order.state.topic_id == LATER
    assert await strays(bench) == []


async def test_a_broker_that_cannot_delete_leaves_the_others_to_lead(bench: Bench) -> None:
    await recreate(bench)
    with capture_logs() as logs:
        await bench.handle(ReplicasNotDeleted((replica(1),)))
    [line] = [line for line in logs if line["event"].startswith("a replica cannot start")]
    assert (line["partition"], line["broker"]) == ("orders-0", 1)
    await deleted(bench, replica(2))
    assert await bench.leader_and_isr() == (2, (2,))
    for event in (StrayDeletion(), AutoPreferredReplicaLeaderElection(1), BrokerChange()):
        await bench.handle(event)
    assert await bench.leader_and_isr() == (2, (2,))
    assert told(bench) == [(2, True)]


def waiting(bench: Bench, *names: str) -> tuple[WaitingReplica, ...]:
    return describe_topics(bench.context, names or None).waiting


async def test_administrators_are_told_which_replicas_wait(bench: Bench) -> None:
    await recreate(bench)
    both = WaitingReplica("orders", 0, 1), WaitingReplica("orders", 0, 2)
    assert waiting(bench) == waiting(bench, "orders") == both
    assert waiting(bench, "payments") == ()
    await deleted(bench, replica(2))
    assert waiting(bench) == both[:1]
    await deleted(bench, replica(1))
    assert waiting(bench) == ()


async def test_a_log_where_the_later_topic_has_no_replica_keeps_none_waiting(bench: Bench) -> None:
    await recreate(bench, 1)
    assert waiting(bench) == (WaitingReplica("orders", 0, 1),)


async def test_a_replica_that_waits_neither_leads_nor_joins_after_the_leader_has_gone(bench: Bench) -> None:
    await recreate(bench)
    await deleted(bench, replica(2))
    bench.context.config = evolve(bench.context.config, unclean_leader_election_enable=True)
    await bench.kill(2)
    assert await bench.leader_and_isr() == (NO_LEADER, (2,))
    assert bench.context.partition_phases[TP] is PartitionPhase.OFFLINE
    await deleted(bench, replica(1))
    assert await bench.leader_and_isr() == (1, (1,))


@pytest.mark.parametrize("earlier", [(), (2,)], ids=["before a leader is elected", "after"])
async def test_a_replica_that_waited_at_a_failover_is_online_once_it_starts(
    bench: Bench, earlier: tuple[int, ...]
) -> None:
    await bench.store.multi([Create(paths.CONTROLLER, b"")])  # since before the strays, so they are ours
    await recreate(bench)
    await deleted(bench, *map(replica, earlier))
    await bench.fail_over()
    assert bench.context.replica_phases[TP, 1] is ReplicaPhase.OFFLINE
    await deleted(bench, replica(1))
    assert bench.context.replica_phases[TP, 1] is ReplicaPhase.ONLINE


async def test_an_order_that_failed_is_repeated_before_the_later_replica_starts(bench: Bench) -> None:
    await recreate(bench)
    await bench.handle(ReplicasNotDeleted((replica(1), replica(2))))
    await bench.handle(StrayDeletion())
    await bench.handle(PartitionModifications("orders"))
    assert told(bench) == []
    await deleted(bench, replica(1))
    assert told(bench) == [(1, True)]


async def test_a_late_answer_about_another_epoch_starts_nothing(bench: Bench) -> None:
    await recreate(bench)
    await bench.handle(obeyed(replica(1)._replace(topic_id="id-of-a-third"), epoch=0))
    assert told(bench) == []


async def test_a_broker_of_ours_is_told_at_once(bench: Bench) -> None:
    await recreate(bench, is_kafkas=False)
    assert told(bench) == [(1, True), (2, True)]
