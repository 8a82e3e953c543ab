"""What Kafka's clients ask the controller about partitions: ElectLeaders, and to reassign partitions or list that.

Functions turn each request into Klamm's; those whose names end with `_answer` turn the answer back. An ApiError becomes
the error of the whole response and, where clients look for it there, that of each partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.alter_partition_reassignments_response import (
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from transport.kafka.messages.elect_leaders_response import PartitionResult, ReplicaElectionResult
from transport.kafka.messages.list_partition_reassignments_response import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    PartitionError,
    ReassignablePartition,
)
from transport.metadata import TopicPartition

_HAS_ERROR: Final = 1
"""The version of ElectLeaders from which on its response has an error of its own."""

_NOT_CONTROLLER: Final = "This is not the correct controller for this cluster."
WORDS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "The topic is being deleted",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "No partition reassignment is in progress.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "The partition does not exist.",
}
"""Kafka's messages for errors that have but one reason."""

_STRATEGIES: Final = {
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "PreferredReplicaPartitionLeaderElectionStrategy",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "OfflinePartitionLeaderElectionStrategy(true)",
}


def _by_topic(outcomes: Iterable[PartitionError]) -> Iterator[tuple[str, list[PartitionError]]]:
    found = sorted(outcomes, key=lambda outcome: outcome.tp)
    return ((topic, list(rows)) for topic, rows in groupby(found, key=lambda outcome: outcome.topic))


def _message(outcome: PartitionError) -> str | None:
    strategy = _STRATEGIES.get(outcome.error)
    if strategy is not None:
        return f"Failed to elect leader for partition {outcome.tp} under strategy {strategy}"
    return WORDS.get(outcome.error) or outcome.message or None


# --- ElectLeaders -----------------------------------------------------------------------------------------------


def elect_leaders(request: kafka.ElectLeadersRequest) -> ElectLeadersRequest:
    """Return a request for elections. Raises ApiError for a kind of election that is unknown, with Kafka's code."""
    try:
        kind = ElectionType(request.election_type)
    except ValueError:
        text = f"Value {request.election_type} must be one of [PREFERRED, UNCLEAN]"
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from None
    return ElectLeadersRequest(kind, _named(request))


def elect_leaders_answer(
    request: kafka.ElectLeadersRequest, version: int, answer: ElectLeadersResponse | ApiError
) -> kafka.ElectLeadersResponse:
    """Return the outcome of each election; of all partitions, those that needed none are left out."""
    error = ErrorCode.NONE
    if isinstance(answer, ApiError):
        error = answer.code if version >= _HAS_ERROR else ErrorCode.NONE
        outcomes = tuple(PartitionError(*tp, answer.code) for tp in _named(request) or ())
    else:
        outcomes = answer.partitions
    topics = [
        ReplicaElectionResult(topic, tuple(PartitionResult(row.partition, row.error, _message(row)) for row in rows))
        for topic, rows in _by_topic(outcomes)
    ]
    return kafka.ElectLeadersResponse(error_code=error, replica_election_results=tuple(topics))


def _named(request: kafka.ElectLeadersRequest) -> tuple[TopicPartition, ...] | None:
    if request.topic_partitions is None:
        return None
    found = (TopicPartition(row.topic, number) for row in request.topic_partitions for number in row.partitions)
    return tuple(dict.fromkeys(found))


# --- AlterPartitionReassignments ----------------------------------------------------------------------------------


def alter_reassignments(request: kafka.AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsRequest:
    """Return a request to reassign partitions. Of a partition that is named twice, the last one counts."""
    items = {
        TopicPartition(topic.name, row.partition_index): row.replicas
        for topic in request.topics
        for row in topic.partitions
    }
    return AlterPartitionReassignmentsRequest(
        tuple(ReassignablePartition(*tp, replicas) for tp, replicas in items.items())
    )


def alter_reassignments_answer(
    answer: AlterPartitionReassignmentsResponse | ApiError,
) -> kafka.AlterPartitionReassignmentsResponse:
    """Return whether the reassignment of each partition has begun, or been cancelled."""
    if isinstance(answer, ApiError):
        message = _top_message(answer)
        return kafka.AlterPartitionReassignmentsResponse(error_code=answer.code, error_message=message)
    topics = [
        ReassignableTopicResponse(
            topic, tuple(ReassignablePartitionResponse(row.partition, row.error, _message(row)) for row in rows)
        )
        for topic, rows in _by_topic(answer.partitions)
    ]
    return kafka.AlterPartitionReassignmentsResponse(responses=tuple(topics))


def _top_message(refusal: ApiError) -> str | None:
    return _NOT_CONTROLLER if refusal.code is ErrorCode.NOT_CONTROLLER else refusal.message or None


# --- ListPartitionReassignments -----------------------------------------------------------------------------------


def list_reassignments(request: kafka.ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsRequest:
    """Return a question for the reassignments of some partitions, or of all."""
    if request.topics is None:
        return ListPartitionReassignmentsRequest()
    found = (TopicPartition(topic.name, number) for topic in request.topics for number in topic.partition_indexes)
    return ListPartitionReassignmentsRequest(tuple(dict.fromkeys(found)))


def list_reassignments_answer(
    answer: ListPartitionReassignmentsResponse | ApiError,
) -> kafka.ListPartitionReassignmentsResponse:
    """Return the reassignments in progress."""
    if isinstance(answer, ApiError):
        message = _top_message(answer)
        return kafka.ListPartitionReassignmentsResponse(error_code=answer.code, error_message=message)
    rows = sorted(answer.partitions, key=lambda move: move.tp)
    topics = [
        OngoingTopicReassignment(
            topic,
            tuple(
                OngoingPartitionReassignment(m.partition, m.replicas, m.adding_replicas, m.removing_replicas)
                for m in moves
            ),
        )
        for topic, moves in groupby(rows, key=lambda move: move.topic)
    ]
    return kafka.ListPartitionReassignmentsResponse(topics=tuple(topics))
