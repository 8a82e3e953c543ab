"""What a controller of ours left to be done before Kafka's controller was in office, and what is left of it after."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from controller.config import ControllerConfig
from controller.events import PartitionModifications, TopicChange, TopicDeletion
from controller.handlers.failover import failover
from controller.model.context import ControllerContext
from controller.model.election_results import Won
from controller.node.candidacy import AmongKafka
from tests.controller.conftest import ENDPOINT, TP, Bench
from tests.controller.deletions import create, deleted, obeyed, replica, strays
from tests.kit import kafka_registrations
from transport.errors import ErrorCode
from transport.metadata import Listener, ReplicaAssignment
from transport.store import formats, paths
from transport.store.protocol import Create, Delete, Set

LATER = "id-of-a-later-topic"
CONFIG = ControllerConfig(ENDPOINT.id, kafka=True)


async def take_office(bench: Bench) -> None:
    """Take office as the next controller of ours does, from Kafka's by an order, and load the cluster."""
    if await bench.read(paths.CONTROLLER) is None or not await is_ours(bench):
        await bench.store.multi([Create(paths.TAKE_OVER)])
    won = await AmongKafka(ENDPOINT.id, lambda: 0).elect(bench.store, None)
    assert isinstance(won, Won)
    bench.context = bench.runner.context = ControllerContext(ENDPOINT, won.epoch, won.version, config=CONFIG)
    bench.seen.clear()
    await bench.run(failover(bench.context, iter(())))


async def is_ours(bench: Bench) -> bool:
    return b"klamm" in (await bench.znode(paths.CONTROLLER)).data


async def give_to_kafka(bench: Bench) -> None:
    """Let a broker be elected, as after a release."""
    epoch = int((await bench.znode(paths.CONTROLLER_EPOCH)).data) + 1
    holder = json.dumps({"version": 2, "brokerid": 1, "timestamp": "0"}).encode()
    await bench.store.multi(
        [
            Delete(paths.OFFICE_LOCK),
            Delete(paths.CONTROLLER),
            Create(paths.CONTROLLER, holder, ephemeral=True),
            Set(paths.CONTROLLER_EPOCH, str(epoch).encode(), -1),
        ]
    )


@pytest.fixture
async def kafka(bench: Bench) -> Bench:
    """Give the test a controller of three brokers of Kafka's, which has just removed a replica on broker 3."""
    for broker_id in (1, 2, 3):
        await kafka_registrations.register(bench.store, broker_id, Listener("PLAINTEXT", "h", 9092))
    await bench.write_topic("orders", (1, 2, 3))
    await take_office(bench)
    await bench.move(TP, (1, 2))
    assert await strays(bench) == [replica(3)]
    return bench


async def recreate(bench: Bench, topic_id: str, *replicas: int) -> None:
    """Let Kafka's controller delete the topic, and create one of that name."""
    await bench.delete_topic("orders", 1)
    await create(bench, topic_id, *replicas)


@pytest.mark.parametrize("topic_id", [LATER, "id-of-orders"])
async def test_a_replica_that_kafkas_controller_may_have_started_is_not_deleted(kafka: Bench, topic_id: str) -> None:
    await give_to_kafka(kafka)
    await recreate(kafka, topic_id, 3, 2)
    with capture_logs() as logs:
        await take_office(kafka)
    assert kafka.seen.stopped(delete=True) == set()
    assert await strays(kafka) == []
    assert not kafka.context.strays.recalled
    assert 3 in {id_ for order in kafka.seen.leader_and_isr() for id_ in order.brokers}
    [line] = [line for line in logs if "no longer deleted" in line["event"]]
    assert (line["partition"], line["broker"], line["topic_id"]) == ("orders-0", 3, "id-of-orders")


async def test_a_replica_that_kafkas_controller_adds_is_not_deleted(kafka: Bench) -> None:
    await give_to_kafka(kafka)
    await recreate(kafka, LATER, 1, 2)
    await kafka.change_topic("orders", 0, ReplicaAssignment((3, 1, 2), (3,), (2,)))
    await take_office(kafka)
    assert 3 not in kafka.seen.stopped(delete=True)
    assert replica(3) not in await strays(kafka)


async def test_a_topic_whose_znode_is_damaged_may_have_any_replica(kafka: Bench) -> None:
    await give_to_kafka(kafka)
    await kafka.delete_topic("orders", 1)
    await kafka.store.multi([Create(paths.topic("orders"), b"{")])
    await take_office(kafka)
    assert kafka.seen.stopped(delete=True) == set()
    assert await strays(kafka) == []


async def test_a_replica_that_nobody_has_is_deleted_all_the_same(kafka: Bench) -> None:
    await give_to_kafka(kafka)
    await take_office(kafka)
    assert kafka.seen.stopped(delete=True) == {3}
    await kafka.handle(obeyed(replica(3)))
    assert await strays(kafka) == []


async def test_a_replica_that_we_assign_later_waits_for_the_deletion(kafka: Bench) -> None:
    await give_to_kafka(kafka)
    await recreate(kafka, LATER, 1, 2)
    await take_office(kafka)
    assert kafka.seen.stopped(delete=True) == {3}
    await kafka.move(TP, (1, 2, 3))
    await take_office(kafka)
    assert kafka.seen.stopped(delete=True) == {3}
    assert 3 not in {id_ for order in kafka.seen.leader_and_isr() for id_ in order.brokers}
    kafka.seen.clear()
    await deleted(kafka, replica(3))
    assert [order.brokers for order in kafka.seen.leader_and_isr()] == [(3,)]


async def test_a_namesake_waits_while_only_ours_were_in_office(kafka: Bench) -> None:
    await recreate(kafka, LATER, 3, 1)
    await kafka.handle(TopicChange())
    await take_office(kafka)
    assert 3 in kafka.seen.stopped(delete=True)
    assert replica(3) in await strays(kafka)


async def test_a_topic_that_is_repaired_later_keeps_its_replicas(kafka: Bench) -> None:
    await give_to_kafka(kafka)
    await kafka.delete_topic("orders", 1)
    await kafka.store.multi([Create(paths.topic("orders"), b"{")])
    await take_office(kafka)
    topic = formats.TopicZnode({0: ReplicaAssignment((3, 1))}, LATER)
    await kafka.store.multi([Set(paths.topic("orders"), formats.encode_topic(topic), -1)])
    await kafka.handle(PartitionModifications("orders"))
    assert kafka.context.leadership[TP].leader == 3
    assert kafka.seen.stopped(delete=True) == set()


async def mark(bench: Bench) -> None:
    await bench.store.multi([Create(paths.delete_topic("orders"))])


async def test_a_marker_that_is_older_than_its_topic_deletes_nothing(kafka: Bench) -> None:
    await give_to_kafka(kafka)
    await mark(kafka)
    await recreate(kafka, LATER, 1, 2)
    await take_office(kafka)
    assert kafka.context.leadership[TP].leader == 1
    assert kafka.context.deletions == {}
    assert await kafka.read(paths.delete_topic("orders")) is None
    await mark(kafka)
    await kafka.handle(TopicDeletion())
    assert list(kafka.context.deletions) == ["orders"]


async def test_a_deletion_that_was_begun_before_is_ended(kafka: Bench) -> None:
    await mark(kafka)
    await give_to_kafka(kafka)
    await take_office(kafka)
    assert list(kafka.context.deletions) == ["orders"]


async def test_another_move_than_that_before_is_cancelled_as_what_it_is(kafka: Bench) -> None:
    await kafka.move(TP, (2, 3))
    before = kafka.context.reassigning[TP]
    assert before.original == (1, 2)
    await give_to_kafka(kafka)
    await kafka.change_topic("orders", 0, ReplicaAssignment((2, 1, 3), (1,), (3,)))
    state = await kafka.read_state(TP)
    await kafka.write_state(TP, replace(state, leader=2, isr=(2, 3)))
    await take_office(kafka)
    now = kafka.context.reassigning[TP]
    assert now.original == ()
    assert now.czxid > before.czxid
    assert (await kafka.move(TP, None)).error is ErrorCode.NONE
    assert await kafka.read_assignment(TP) == ReplicaAssignment((2, 3))


async def test_a_move_that_goes_on_keeps_its_identity_and_its_original_replicas(kafka: Bench) -> None:
    await kafka.move(TP, (3, 2))
    before = kafka.context.reassigning[TP]
    await give_to_kafka(kafka)
    await take_office(kafka)
    assert kafka.context.reassigning[TP] == before
    assert kafka.context.reassigning[TP].original == (1, 2)


async def test_an_override_leaves_the_identity_to_the_next_controller_of_ours(kafka: Bench) -> None:
    await kafka.move(TP, (3, 2))
    before = kafka.context.reassigning[TP]
    await give_to_kafka(kafka)
    await take_office(kafka)
    # The override wants replica 1 back, and replica 3 stays for as long as it leads.
    state = await kafka.read_state(TP)
    await kafka.write_state(TP, replace(state, leader=3, isr=(3,)))
    await kafka.change_topic("orders", 0, ReplicaAssignment((2, 1, 3), (), (3,)))
    await take_office(kafka)
    assert kafka.context.reassigning[TP] == before
