"""Requests to create topics and to add partitions."""

from __future__ import annotations

import pytest

from controller.events import PartitionModifications, TopicChange
from controller.handlers import topic_requests
from controller.model.placement import Start
from controller.model.state_machines import PartitionPhase
from tests.controller.conftest import BROKERS, TP, Bench
from transport.errors import ErrorCode
from transport.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    MetadataRequest,
    MetadataResponse,
    NewPartitions,
    NewTopic,
    TopicError,
)
from transport.metadata import BrokerRegistration, LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Set

SECOND = TopicPartition("orders", 1)


async def create(bench: Bench, *topics: NewTopic) -> list[ErrorCode]:
    response = await bench.ask(CreateTopicsRequest(topics), CreateTopicsResponse)
    return outcomes(response.topics, [topic.name for topic in topics])


async def grow(bench: Bench, *topics: NewPartitions) -> list[ErrorCode]:
    response = await bench.ask(CreatePartitionsRequest(topics), CreatePartitionsResponse)
    return outcomes(response.topics, [topic.name for topic in topics])


def outcomes(results: tuple[TopicError, ...], names: list[str]) -> list[ErrorCode]:
    assert [result.name for result in results] == names
    assert all(bool(result.message) is (result.error is not ErrorCode.NONE) for result in results)
    return [result.error for result in results]


async def register_in_racks(bench: Bench, racks: dict[int, str | None]) -> None:
    for id_, rack in racks.items():
        data = formats.encode_broker(BrokerRegistration(id_, "127.0.0.1", 9000 + id_, -1, rack), 0)
        await bench.store.multi([Create(paths.broker(id_), data, ephemeral=True)])
    await bench.start(brokers=())


# --- creation ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("D8")
async def test_topics_are_created_as_asked_or_placed_on_the_live_brokers(bench: Bench) -> None:
    await bench.start(brokers=(1, 2, 3))
    topics = (NewTopic("orders", 3, 2), NewTopic("others", 0, 0, ((3, 1), (1, 2))))
    assert await create(bench, *topics) == [ErrorCode.NONE, ErrorCode.NONE]
    await bench.handle(TopicChange())
    placed = [await bench.read_assignment(TopicPartition("orders", number)) for number in range(3)]
    assert sorted(assignment.replicas[0] for assignment in placed) == [1, 2, 3]
    assert sorted(assignment.replicas[1] for assignment in placed) == [1, 2, 3]
    assert await bench.read_assignment(TopicPartition("others", 0)) == ReplicaAssignment((3, 1))
    ids = {topic.znode.topic_id for topic in bench.context.topics.values()}
    assert len(ids) == 2
    assert set(bench.context.partition_phases.values()) == {PartitionPhase.ONLINE}


@pytest.mark.requirement("D8")
async def test_what_is_only_to_be_validated_is_judged_and_changes_nothing(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2))
    before = bench.seen.zookeeper.tree.zxid
    topics = (NewTopic("fine", 3, 2), NewTopic("too-many", 3, 3), NewTopic(TP.topic, 1, 1))
    created = await bench.ask(CreateTopicsRequest(topics, validate_only=True), CreateTopicsResponse)
    judged = [ErrorCode.NONE, ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.TOPIC_ALREADY_EXISTS]
    assert outcomes(created.topics, [topic.name for topic in topics]) == judged
    growths = (NewPartitions(TP.topic, 5), NewPartitions("nowhere", 5))
    grown = await bench.ask(CreatePartitionsRequest(growths, validate_only=True), CreatePartitionsResponse)
    judged = [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert outcomes(grown.topics, [growth.name for growth in growths]) == judged
    assert bench.seen.zookeeper.tree.zxid == before


@pytest.mark.requirement("D8")
async def test_where_placement_begins_is_drawn_and_the_same_draw_places_alike(bench: Bench) -> None:
    await bench.start(brokers=(1, 2, 3))
    starts = [Start(0, 0), Start(2, 1), Start(0, 0)]
    request = CreateTopicsRequest(tuple(NewTopic(name, 1, 2) for name in ("a", "b", "c")))
    await bench.run(topic_requests.create_topics(bench.context, request, ("1", "2", "3"), starts))
    placed = [(await bench.read_assignment(TopicPartition(name, 0))).replicas for name in ("a", "b", "c")]
    assert placed == [(1, 2), (3, 2), (1, 2)]


@pytest.mark.requirement("D8")
async def test_replicas_are_on_distinct_racks_and_mixed_racks_are_refused(bench: Bench) -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b"}
    await register_in_racks(bench, racks)
    assert await create(bench, NewTopic("orders", 8, 2)) == [ErrorCode.NONE]
    for number in range(8):
        replicas = (await bench.read_assignment(TopicPartition("orders", number))).replicas
        assert {racks[id_] for id_ in replicas} == {"a", "b"}
    await bench.revive(5)
    assert await create(bench, NewTopic("others", 1, 2), NewTopic("named", 0, 0, ((5, 1),))) == [
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.NONE,
    ]


@pytest.mark.requirement("D8")
@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic("", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(".", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("a/b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("line\n", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("x" * 250, 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("in_use", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("in.use", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("hidden", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("doomed", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("orders", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("orders", 100_000, 3), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("orders", 2_000_000_000, 1), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("orders", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("orders", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("orders", 0, 0, ((1, 1),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("orders", 0, 0, ((),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("orders", 0, 0, ((1, 2), (1,))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("orders", 0, 0, ((1, 9),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("orders", 0, 0, ((-1, 1),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else None,
)
async def test_what_cannot_be_created_is_refused_and_the_rest_is_created(
    bench: Bench, topic: NewTopic, error: ErrorCode
) -> None:
    await bench.start(brokers=(1, 2, 3))
    await bench.write_topic("in_use", (1,))
    await bench.handle(TopicChange())
    # One that the controller has not seen yet, and one that a tool has marked before it was there.
    await bench.write_topic("hidden", (1,))
    await bench.store.multi([Create(paths.delete_topic("doomed"))])
    assert await create(bench, topic, NewTopic("good", 1, 1)) == [error, ErrorCode.NONE]
    assert await bench.read(paths.topic("good")) is not None
    assert await bench.read(paths.topic("orders")) is None


async def test_names_collide_and_repeat_within_one_request_too(bench: Bench) -> None:
    await bench.start(brokers=(1,))
    names = ("a.b", "a_b", "twice", "a-b", "twice")
    assert await create(bench, *(NewTopic(name, 1, 1) for name in names)) == [
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
    ]
    assert await bench.read(paths.topic("twice")) is None


async def test_without_brokers_nothing_is_created(bench: Bench) -> None:
    await bench.start(brokers=())
    assert await create(bench, NewTopic("orders", 1, 1)) == [ErrorCode.BROKER_NOT_AVAILABLE]


# --- growth -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("D8")
async def test_partitions_are_added_as_asked_and_come_online(bench: Bench) -> None:
    await bench.start((1, 2))
    before = await bench.read_state(TP)
    assert await grow(bench, NewPartitions("orders", 3, ((4, 5), (6, 4)))) == [ErrorCode.NONE]
    assert await bench.read_assignment(SECOND) == ReplicaAssignment((4, 5))
    assert await bench.read_state(TopicPartition("orders", 2)) == LeaderAndIsr(6, 0, (6, 4), 0, 1)
    assert await bench.read_state(TP) == before
    assert [(tell.brokers, tell.is_new) for tell in bench.seen.leader_and_isr()] == [((4, 5), True), ((6, 4), True)]
    assert bench.seen.latest_metadata(SECOND) == bench.context.describe(SECOND)
    # The watch of the controller's own write finds nothing to do.
    bench.seen.clear()
    await bench.handle(PartitionModifications("orders"))
    assert bench.seen.rounds == []


@pytest.mark.requirement("D8")
async def test_added_partitions_are_placed_where_the_dealing_of_leaders_goes_on(bench: Bench) -> None:
    await bench.start((3, 1), (4, 2))
    assert await grow(bench, NewPartitions("orders", 8)) == [ErrorCode.NONE]
    leaders = [(await bench.read_state(TopicPartition("orders", number))).leader for number in range(8)]
    assert leaders == [3, 4, 5, 6, 1, 2, 3, 4]
    assert {len(bench.context.assignment(TopicPartition("orders", number)).replicas) for number in range(8)} == {2}


@pytest.mark.requirement("D8")
@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewPartitions("nowhere", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (NewPartitions("a/b", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (NewPartitions("orders", 2), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("orders", 1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("orders", -1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("orders", 200_000), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("orders", 4, ((1, 2),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("orders", 3, ((1, 1),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("orders", 3, ((1,),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("orders", 3, ((1, 9),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("moving", 3), ErrorCode.REASSIGNMENT_IN_PROGRESS),
        (NewPartitions("doomed", 3), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewPartitions("gaps", 3), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=str,
)
async def test_what_cannot_grow_is_refused_and_the_rest_grows(
    bench: Bench, topic: NewPartitions, error: ErrorCode
) -> None:
    await bench.start((1, 2), (2, 1))
    for name in ("moving", "doomed", "good"):
        await bench.write_topic(name, (1, 2))
    await bench.write_topic("gaps", (1, 2))
    await bench.store.multi([Set(paths.topic("gaps"), b'{"version":1,"partitions":{"0":[1],"7":[1]}}', 0)])
    await bench.handle(TopicChange())
    await bench.move(TopicPartition("moving", 0), (4, 5))
    await bench.store.multi([Create(paths.delete_topic("doomed"))])
    known = dict(bench.context.topics)
    assert await grow(bench, topic, NewPartitions("good", 2)) == [error, ErrorCode.NONE]
    assert {**bench.context.topics, "good": None} == {**known, "good": None}
    assert len(bench.context.topics["good"].znode.partitions) == 2


async def test_a_topic_named_twice_does_not_grow(bench: Bench) -> None:
    await bench.start((1, 2))
    twice = (NewPartitions("orders", 2), NewPartitions("orders", 3))
    assert await grow(bench, *twice) == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]
    assert len(bench.context.topics["orders"].znode.partitions) == 1


@pytest.mark.requirement("D8")
async def test_growth_takes_over_what_a_tool_has_added_meanwhile(bench: Bench) -> None:
    """KAFKA-9038: the topic's znode is written over the version that was read, never blindly."""
    await bench.start((1, 2))
    await bench.change_topic("orders", 1, ReplicaAssignment((5, 6)))
    assert await grow(bench, NewPartitions("orders", 2)) == [ErrorCode.INVALID_PARTITIONS]
    assert await bench.read_assignment(SECOND) == ReplicaAssignment((5, 6))
    await bench.change_topic("orders", 2, ReplicaAssignment((6, 1)))
    assert await grow(bench, NewPartitions("orders", 4, ((3, 4), (4, 3)))) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
    await bench.handle(PartitionModifications("orders"))
    assert [bench.context.partition_phases[TopicPartition("orders", n)] for n in range(3)] == [
        PartitionPhase.ONLINE
    ] * 3


async def test_a_topic_that_is_damaged_or_gone_does_not_grow(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.store.multi([Set(paths.topic("orders"), b"{", -1)])
    assert await grow(bench, NewPartitions("orders", 2)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    await bench.delete_topic("orders", 1)
    assert await grow(bench, NewPartitions("orders", 2)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_a_next_controller_starts_what_its_predecessor_added(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.crash(grow(bench, NewPartitions("orders", 2, ((4, 5),))), after="grow")
    await bench.fail_over()
    assert (await bench.read_state(SECOND)).leader == 4
    assert bench.context.partition_phases[SECOND] is PartitionPhase.ONLINE
    assert set(BROKERS) == set(bench.context.brokers)


async def test_a_partition_that_was_never_led_is_described_without_a_leader(bench: Bench) -> None:
    await bench.start((1, 2), (7, 8))
    described = await bench.ask(MetadataRequest(("nowhere", "orders", "orders")), MetadataResponse)
    states = [(s.partition, s.leader, s.leader_epoch, s.isr, s.offline_replicas) for s in described.partitions]
    assert states == [(0, 1, 0, (1, 2), ()), (1, -1, -1, (), (7, 8))]
    assert (await bench.ask(MetadataRequest(), MetadataResponse)).partitions == described.partitions
