"""What Kafka's controller refuses about topics and reassignments is refused in its order and its words."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from controller.model.context import ControllerContext
from controller.model.facts import BrokerRegistered, DeletionStarted, ReleaseSeen, TopicWritten
from controller.model.kafka_refusals import (
    growth_fault,
    judge_new_topic,
    move_refusal,
    repeated,
    repeated_or_prohibited,
)
from transport.errors import ErrorCode
from transport.kafka.messages.create_partitions_request import CreatePartitionsAssignment, CreatePartitionsTopic
from transport.kafka.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from transport.kafka.releases import Release, TopicDefaults
from transport.messages import BrokerEndpoint, NewTopic, ReassignablePartition, TopicError
from transport.metadata import BrokerRegistration, ReplicaAssignment
from transport.store.formats import TopicZnode

BOTH = "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used at the same time."
OTHER = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
LONG = "x" * 250


@pytest.fixture
def context() -> ControllerContext:
    """Give the test a cluster of three brokers, some topics, and one that is being deleted."""
    context = ControllerContext(BrokerEndpoint(1001, "127.0.0.1", 1), 1, 1)
    for broker_id in (1, 2, 3):
        context.apply(BrokerRegistered(BrokerRegistration(broker_id, "127.0.0.1", 9000 + broker_id, broker_id)))
    for name in ("orders", "going", "pay_ments", "moving"):
        partitions = {number: ReplicaAssignment((1, 2)) for number in range(2)}
        if name == "moving":
            partitions[1] = ReplicaAssignment((3, 1, 2), (3,), (1,))
        context.apply(TopicWritten(name, TopicZnode(partitions, f"id-of-{name}"), 0))
    context.apply(DeletionStarted("going"))
    context.apply(ReleaseSeen(2, Release(needs_registration=False, topic_defaults=TopicDefaults(5, 2))))
    return context


def placed(*rows: tuple[int, ...], first: int = 0) -> tuple[CreatableReplicaAssignment, ...]:
    return tuple(CreatableReplicaAssignment(number, row) for number, row in enumerate(rows, first))


def topic(name: str = "new", partitions: int = -1, factor: int = -1, **fields: Any) -> CreatableTopic:
    return CreatableTopic(name, partitions, factor, **fields)


def test_what_a_new_topic_leaves_open_is_what_the_brokers_say(context: ControllerContext) -> None:
    assert judge_new_topic(context, topic()) == NewTopic("new", 5, 2)
    assert judge_new_topic(context, topic("new", 3, 1)) == NewTopic("new", 3, 1)
    named = judge_new_topic(context, topic(assignments=placed((1, 2), (2, 3))))
    assert named == NewTopic("new", -1, -1, ((1, 2), (2, 3)))


def test_without_a_word_of_the_brokers_kafkas_own_defaults_count(context: ControllerContext) -> None:
    context.apply(ReleaseSeen(2, Release(needs_registration=False)))
    assert judge_new_topic(context, topic()) == NewTopic("new", 1, 1)


@pytest.mark.parametrize(
    ("asked", "code", "text"),
    [
        (topic("orders"), 36, "Topic 'orders' already exists."),
        (topic("going"), 36, "Topic 'going' is marked for deletion."),
        (topic("a b"), 17, f"Topic name is invalid: 'a b' {OTHER}"),
        (topic(""), 17, "Topic name is invalid: the empty string is not allowed"),
        (topic(".."), 17, "Topic name is invalid: '..' is not allowed"),
        (topic(LONG), 17, f"Topic name is invalid: the length of '{LONG}' is longer than the max allowed length 249"),
        (topic("pay.ments"), 17, "Topic 'pay.ments' collides with existing topics: pay_ments"),
        (topic("new", 0), 37, "Number of partitions must be larger than 0."),
        (topic("new", 1, 0), 38, "Replication factor must be larger than 0."),
        (topic("new", 1, 4), 38, "Replication factor: 4 larger than available brokers: 3."),
        (topic("a b", 1, 4), 38, "Replication factor: 4 larger than available brokers: 3."),
        (topic("new", 1, assignments=placed((1,))), 42, BOTH),
        (topic(assignments=placed((1, 2), (3,))), 39, "All partitions should have the same number of replicas"),
        (
            topic(assignments=placed((1, 2), (2, 2))),
            39,
            "Duplicate replica assignment found: HashMap(0 -> ArrayBuffer(1, 2), 1 -> ArrayBuffer(2, 2))",
        ),
        (topic(assignments=placed((1,), first=1)), 39, "partitions should be a consecutive 0-based integer sequence"),
        (
            topic(configs=(CreatableTopicConfig("retention.ms", None), CreatableTopicConfig("a", None))),
            40,
            "Null value not supported for topic configs: retention.ms,a",
        ),
        (topic(configs=(CreatableTopicConfig("foo", "1"),)), 40, "Unknown topic config name: foo"),
    ],
    ids=lambda value: value.name[:10] if isinstance(value, CreatableTopic) else None,
)
def test_a_topic_that_is_not_created(context: ControllerContext, asked: CreatableTopic, code: int, text: str) -> None:
    assert judge_new_topic(context, asked) == TopicError(asked.name, ErrorCode(code), text)


def test_some_topics_are_refused_whoever_asks() -> None:
    asked = [topic("a"), topic("b"), topic("a"), topic("__cluster_metadata")]
    refused = {name: (one.error, one.message) for name, one in repeated_or_prohibited(asked).items()}
    invalid = ErrorCode.INVALID_REQUEST
    assert refused == {
        "a": (invalid, "Found multiple entries for this topic."),
        "__cluster_metadata": (invalid, "Creation of internal topic __cluster_metadata is prohibited."),
    }
    more = [CreatePartitionsTopic("a", 3), CreatePartitionsTopic("a", 3), CreatePartitionsTopic("b", 3)]
    assert repeated(more) == {"a": TopicError("a", invalid, "Duplicate topic in request.")}


def more(name: str, count: int, *rows: tuple[int, ...]) -> CreatePartitionsTopic:
    assignments = tuple(CreatePartitionsAssignment(row) for row in rows) if rows else None
    return CreatePartitionsTopic(name, count, assignments)


def test_a_topic_may_grow(context: ControllerContext) -> None:
    assert growth_fault(context, more("orders", 3)) is None
    assert growth_fault(context, more("orders", 4, (1, 2), (3, 1))) is None


@pytest.mark.parametrize(
    ("asked", "code", "text"),
    [
        (more("going", 3), 17, "The topic is queued for deletion."),
        (more("moving", 3), 60, "A partition reassignment is in progress for the topic 'moving'."),
        (more("absent", 3), 3, "The topic 'absent' does not exist."),
        (more("orders", 2), 37, "Topic already has 2 partitions."),
        (more("orders", 1), 37, "Topic currently has 2 partitions, which is higher than the requested 1."),
        (more("orders", 3, (1, 9)), 39, "Unknown broker(s) in replica assignment: 9."),
        (
            more("orders", 4, (1, 2)),
            39,
            "Increasing the number of partitions by 2 but 1 assignments provided.",
        ),
        (more("orders", 3, ()), 39, "Cannot have replication factor of 0 for partition id 2."),
        (
            more("orders", 3, (1, 1)),
            39,
            "Duplicate brokers not allowed in replica assignment: 1, 1 for partition id 2.",
        ),
        (
            more("orders", 4, (1,), (1, 2, 3)),
            39,
            (
                "Inconsistent replication factor between partitions, partition 0 has 2 while partitions [2, 3] have "
                "replication factors [1, 3], respectively."
            ),
        ),
    ],
    ids=lambda value: value.name if isinstance(value, CreatePartitionsTopic) else None,
)
def test_a_topic_that_does_not_grow(
    context: ControllerContext, asked: CreatePartitionsTopic, code: int, text: str
) -> None:
    assert growth_fault(context, asked) == (ErrorCode(code), text)


def test_no_assignments_are_not_the_same_as_an_empty_list_of_them(context: ControllerContext) -> None:
    told = growth_fault(context, CreatePartitionsTopic("orders", 3, ()))
    assert told is not None
    assert told[1] == "Increasing the number of partitions by 1 but 0 assignments provided."


@pytest.mark.parametrize(
    ("replicas", "text"),
    [
        ((), "Empty replica list specified in partition reassignment."),
        ((1, 1), "Duplicate replica ids in partition reassignment replica list: ArrayBuffer(1, 1)"),
        ((1, -2), "Invalid broker id in replica list: ArrayBuffer(1, -2)"),
        (
            (1, 8, 9),
            (
                "Replica assignment has brokers that are not alive. Replica list: ArrayBuffer(8, 9), "
                "live broker list: Set(1, 2, 3)"
            ),
        ),
    ],
)
def test_a_reassignment_that_does_not_begin(context: ControllerContext, replicas: tuple[int, ...], text: str) -> None:
    refusal = move_refusal(context, ReassignablePartition("orders", 0, replicas))
    assert refusal is not None
    assert (refusal.tp, refusal.error, refusal.message) == (("orders", 0), ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def test_kept_replicas_may_be_dead(context: ControllerContext) -> None:
    znode = context.topics["orders"].znode
    context.apply(TopicWritten("orders", evolve(znode, partitions={0: ReplicaAssignment((9, 1))}), 1))
    assert move_refusal(context, ReassignablePartition("orders", 0, (1, 9))) is None
    assert move_refusal(context, ReassignablePartition("orders", 0, None)) is None
