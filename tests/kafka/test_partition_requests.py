"""ElectLeaders and the requests about reassignments of Kafka's clients mean the same to us, in every version."""

from __future__ import annotations

import pytest

from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.codec import decode, encode
from transport.kafka.messages.alter_partition_reassignments_request import (
    ReassignablePartition as Reassignable,
    ReassignableTopic,
)
from transport.kafka.messages.elect_leaders_request import TopicPartitions
from transport.kafka.messages.list_partition_reassignments_request import ListPartitionReassignmentsTopics
from transport.kafka.partition_requests import (
    alter_reassignments,
    alter_reassignments_answer,
    elect_leaders,
    elect_leaders_answer,
    list_reassignments,
    list_reassignments_answer,
)
from transport.messages import (
    AlterPartitionReassignmentsResponse,
    ElectionType,
    ElectLeadersResponse,
    ListPartitionReassignmentsResponse,
    OngoingReassignment,
    PartitionError,
    ReassignablePartition,
)
from transport.metadata import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
REFUSAL = ApiError(ErrorCode.NOT_CONTROLLER, "standing by")


def elections(version: int, **fields: object) -> kafka.ElectLeadersRequest:
    """Return a request as a client encodes it in a version: read back from its bytes."""
    kind = {"election_type": 1} if version >= 1 else {}
    request = kafka.ElectLeadersRequest(**{**kind, **fields})  # type: ignore[arg-type]
    return decode(kafka.ElectLeadersRequest, version, encode(request, version))


@pytest.mark.parametrize("version", range(3))
def test_elections_of_some_partitions(version: int) -> None:
    request = elections(version, topic_partitions=(TopicPartitions("b", (0,)), TopicPartitions("a", (1, 0, 1))))
    asked = elect_leaders(request)
    assert asked.election_type is (ElectionType.UNCLEAN if version >= 1 else ElectionType.PREFERRED)
    assert asked.partitions == (B0, A1, A0)
    needless = PartitionError("a", 1, ErrorCode.ELECTION_NOT_NEEDED, "broker 1 leads a-1 already")
    told = elect_leaders_answer(request, version, ElectLeadersResponse((PartitionError("b", 0), needless)))
    answer = decode(kafka.ElectLeadersResponse, version, encode(told, version))
    rows = [
        (topic.topic, row.partition_id, row.error_code, row.error_message)
        for topic in answer.replica_election_results
        for row in topic.partition_result
    ]
    assert rows == [("a", 1, 84, "Leader election not needed for topic partition."), ("b", 0, 0, None)]


@pytest.mark.parametrize("version", range(3))
def test_elections_of_all_partitions(version: int) -> None:
    assert elect_leaders(elections(version, topic_partitions=None)).partitions is None


def test_an_unknown_kind_of_election_is_refused() -> None:
    with pytest.raises(ApiError, match=r"UNKNOWN_SERVER_ERROR: Value 7 must be one of \[PREFERRED, UNCLEAN\]"):
        elect_leaders(elections(2, election_type=7))


@pytest.mark.parametrize(
    ("code", "strategy"),
    [
        (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "PreferredReplicaPartitionLeaderElectionStrategy"),
        (ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "OfflinePartitionLeaderElectionStrategy(true)"),
    ],
)
def test_a_failed_election_is_told_in_kafkas_words(code: ErrorCode, strategy: str) -> None:
    failed = ElectLeadersResponse((PartitionError("a", 0, code, "it is not alive"),))
    [topic] = elect_leaders_answer(elections(2), 2, failed).replica_election_results
    [row] = topic.partition_result
    assert row.error_message == f"Failed to elect leader for partition a-0 under strategy {strategy}"


@pytest.mark.parametrize("version", range(3))
def test_a_refusal_of_all_elections(version: int) -> None:
    request = elections(version, topic_partitions=(TopicPartitions("a", (0,)),))
    told = elect_leaders_answer(request, version, REFUSAL)
    answer = decode(kafka.ElectLeadersResponse, version, encode(told, version))
    assert answer.error_code == (41 if version >= 1 else 0)
    [topic] = answer.replica_election_results
    [row] = topic.partition_result
    assert (row.error_code, row.error_message) == (41, None)


def test_reassignments() -> None:
    topics = (
        ReassignableTopic("b", (Reassignable(0, None),)),
        ReassignableTopic("a", (Reassignable(1, (1,)), Reassignable(0, (2, 3)), Reassignable(1, (3, 1)))),
    )
    request = kafka.AlterPartitionReassignmentsRequest(5, topics=topics)
    told = decode(kafka.AlterPartitionReassignmentsRequest, 0, encode(request, 0))
    assert alter_reassignments(told).partitions == (
        ReassignablePartition("b", 0, None),
        ReassignablePartition("a", 1, (3, 1)),
        ReassignablePartition("a", 0, (2, 3)),
    )
    nothing = PartitionError("b", 0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "b-0 is not being reassigned")
    invalid = PartitionError("a", 1, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "the reason")
    outcomes = AlterPartitionReassignmentsResponse((nothing, invalid, PartitionError("a", 0)))
    answer = alter_reassignments_answer(outcomes)
    rows = [
        (topic.name, row.partition_index, row.error_code, row.error_message)
        for topic in decode(kafka.AlterPartitionReassignmentsResponse, 0, encode(answer, 0)).responses
        for row in topic.partitions
    ]
    assert rows == [
        ("a", 0, 0, None),
        ("a", 1, 39, "the reason"),
        ("b", 0, 85, "No partition reassignment is in progress."),
    ]


def test_ongoing_reassignments() -> None:
    topics = (ListPartitionReassignmentsTopics("b", (0,)), ListPartitionReassignmentsTopics("a", (1, 0)))
    request = kafka.ListPartitionReassignmentsRequest(5, topics)
    told = decode(kafka.ListPartitionReassignmentsRequest, 0, encode(request, 0))
    assert list_reassignments(told).partitions == (B0, A1, A0)
    assert list_reassignments(kafka.ListPartitionReassignmentsRequest(topics=None)).partitions is None
    moves = (
        OngoingReassignment("b", 0, (1, 2, 3), (3,), (1,), 1, (1, 2)),
        OngoingReassignment("a", 1, (2, 1), (2,), (1,), 1, (1,)),
    )
    answer = list_reassignments_answer(ListPartitionReassignmentsResponse(moves))
    rows = [
        (topic.name, row.partition_index, row.replicas, row.adding_replicas, row.removing_replicas)
        for topic in decode(kafka.ListPartitionReassignmentsResponse, 0, encode(answer, 0)).topics
        for row in topic.partitions
    ]
    assert rows == [("a", 1, (2, 1), (2,), (1,)), ("b", 0, (1, 2, 3), (3,), (1,))]


def test_a_refusal_of_all_reassignments() -> None:
    alter, listed = alter_reassignments_answer(REFUSAL), list_reassignments_answer(REFUSAL)
    text = "This is not the correct controller for this cluster."
    assert [(one.error_code, one.error_message) for one in (alter, listed)] == [(41, text)] * 2
