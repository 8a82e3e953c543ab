"""CreateTopics, DeleteTopics and CreatePartitions of Kafka's clients mean the same to us, in every version."""

from __future__ import annotations

import pytest

from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.codec import decode, encode
from transport.kafka.messages.create_partitions_request import CreatePartitionsAssignment, CreatePartitionsTopic
from transport.kafka.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from transport.kafka.messages.delete_topics_request import DeleteTopicState
from transport.kafka.topic_requests import (
    CreatedTopic,
    create_partitions_answer,
    create_topics_answer,
    delete_topics_answer,
    new_partitions,
    new_topic,
    topics_to_delete,
)
from transport.messages import NewPartitions, NewTopic, TopicError

ID = "AAAAAAAAAAAAAAAAAAAAAQ"
UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAAg"
REFUSED = TopicError("taken", ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'taken' already exists.")


@pytest.mark.parametrize("version", range(8))
def test_a_topic_to_create(version: int) -> None:
    configs = (CreatableTopicConfig("retention.ms", "5"), CreatableTopicConfig("preallocate", None))
    placed = (CreatableReplicaAssignment(1, (2, 3)), CreatableReplicaAssignment(0, (1, 2)))
    counted, named = CreatableTopic("orders", 3, 2, (), configs), CreatableTopic("placed", -1, -1, placed)
    request = kafka.CreateTopicsRequest((counted, named), 1_000, validate_only=version >= 1)
    told = decode(kafka.CreateTopicsRequest, version, encode(request, version))
    assert told == request
    settings = (("retention.ms", "5"), ("preallocate", ""))
    assert [new_topic(topic, 3, 2) for topic in told.topics] == [
        NewTopic("orders", 3, 2, (), settings),
        NewTopic("placed", -1, -1, ((1, 2), (2, 3))),
    ]


@pytest.mark.parametrize("version", range(8))
def test_the_outcome_of_each_creation(version: int) -> None:
    request = kafka.CreateTopicsRequest((CreatableTopic("taken"), CreatableTopic("orders")))
    outcomes = {"orders": TopicError("orders"), "taken": REFUSED}
    created = {"orders": CreatedTopic(3, 2, ID), "taken": CreatedTopic(1, 1, UNKNOWN_ID)}
    answer = create_topics_answer(request, outcomes, created)
    taken, orders = decode(kafka.CreateTopicsResponse, version, encode(answer, version)).topics
    assert (taken.name, taken.error_code, taken.num_partitions) == ("taken", 36, -1)
    assert taken.error_message == (REFUSED.message if version >= 1 else "")
    assert (orders.name, orders.error_code) == ("orders", 0)
    assert orders.error_message == (None if version >= 1 else "")
    assert (orders.num_partitions, orders.replication_factor) == ((3, 2) if version >= 5 else (-1, -1))
    assert (taken.topic_id, orders.topic_id) == ("", ID if version >= 7 else "")


def test_a_refusal_of_everything_is_that_of_each_topic() -> None:
    refusal = ApiError(ErrorCode.NOT_CONTROLLER)
    create = kafka.CreateTopicsRequest((CreatableTopic("a"), CreatableTopic("b")))
    created = create_topics_answer(create, refusal).topics
    grow = kafka.CreatePartitionsRequest((CreatePartitionsTopic("a"), CreatePartitionsTopic("b")))
    grown = create_partitions_answer(grow, refusal).results
    assert [(row.name, row.error_code, row.error_message) for row in created] == [("a", 41, None), ("b", 41, None)]
    assert [(row.name, row.error_code, row.error_message) for row in grown] == [("a", 41, None), ("b", 41, None)]
    deleted = delete_topics_answer((DeleteTopicState("a"), DeleteTopicState(None, ID)), {}, refusal, 6).responses
    assert [(row.name, row.topic_id, row.error_code) for row in deleted] == [("a", "", 41), (None, ID, 41)]


@pytest.mark.parametrize("version", range(6))
def test_topics_to_delete_by_name(version: int) -> None:
    request = kafka.DeleteTopicsRequest(topic_names=("a", "b"), timeout_ms=5)
    told = decode(kafka.DeleteTopicsRequest, version, encode(request, version))
    topics = topics_to_delete(told, version)
    assert topics == (DeleteTopicState("a"), DeleteTopicState("b"))
    unknown = TopicError("b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no topic b")
    answer = delete_topics_answer(topics, {}, {"a": TopicError("a"), "b": unknown}, version)
    rows = decode(kafka.DeleteTopicsResponse, version, encode(answer, version)).responses
    assert [(row.name, row.error_code, row.error_message) for row in rows] == [("a", 0, None), ("b", 3, None)]


def test_topics_to_delete_by_id() -> None:
    by_id = DeleteTopicState(None, ID)
    request = kafka.DeleteTopicsRequest((by_id, DeleteTopicState(None, UNKNOWN_ID), DeleteTopicState("b")))
    topics = topics_to_delete(decode(kafka.DeleteTopicsRequest, 6, encode(request, 6)), 6)
    assert topics == request.topics
    outcomes = {"a": TopicError("a"), "b": TopicError("b")}
    rows = delete_topics_answer(topics, {ID: "a"}, outcomes, 6).responses
    told = [(row.name, row.topic_id, row.error_code) for row in rows]
    assert told == [("a", ID, 0), (None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID), ("b", "", 0)]


def test_who_may_not_delete_a_topic_is_not_told_the_name_of_its_id() -> None:
    denied = {"a": TopicError("a", ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no")}
    topics = (DeleteTopicState(None, ID), DeleteTopicState("a"))
    rows = delete_topics_answer(topics, {ID: "a"}, denied, 6).responses
    assert [(row.name, row.error_code) for row in rows] == [(None, 29), ("a", 29)]


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_old_clients_do_not_know_that_deletion_may_be_disabled(version: int, code: ErrorCode) -> None:
    outcomes = {"a": TopicError("a", ErrorCode.TOPIC_DELETION_DISABLED)}
    [row] = delete_topics_answer((DeleteTopicState("a"),), {}, outcomes, version).responses
    assert row.error_code == code


@pytest.mark.parametrize("version", range(4))
def test_more_partitions(version: int) -> None:
    placed = (CreatePartitionsAssignment((1, 2)), CreatePartitionsAssignment((2, 3)))
    topics = (CreatePartitionsTopic("a", 3, None), CreatePartitionsTopic("b", 4, placed))
    request = kafka.CreatePartitionsRequest(topics, 5, validate_only=True)
    told = decode(kafka.CreatePartitionsRequest, version, encode(request, version))
    assert [new_partitions(topic) for topic in told.topics] == [
        NewPartitions("a", 3),
        NewPartitions("b", 4, ((1, 2), (2, 3))),
    ]
    outcomes = {"a": TopicError("a"), "b": TopicError("b", ErrorCode.INVALID_PARTITIONS, "Topic already has")}
    answer = create_partitions_answer(told, outcomes)
    rows = decode(kafka.CreatePartitionsResponse, version, encode(answer, version)).results
    assert [(row.name, row.error_code, row.error_message) for row in rows] == [
        ("a", 0, None),
        ("b", 37, "Topic already has"),
    ]


def test_a_topic_that_is_named_twice_has_one_outcome_for_more_partitions() -> None:
    request = kafka.CreatePartitionsRequest((CreatePartitionsTopic("a", 3), CreatePartitionsTopic("a", 4)))
    outcome = TopicError("a", ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
    [row] = create_partitions_answer(request, {"a": outcome}).results
    assert (row.name, row.error_code) == ("a", 42)
