"""What Kafka's clients ask the controller about topics: CreateTopics, DeleteTopics and CreatePartitions.

The functions make responses of outcomes by topic, in the order of the request. An ApiError stands for the outcome of
every topic, as these responses have no error of their own. Kafka sends no message where there is no reason to add to
the error code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.create_partitions_request import CreatePartitionsTopic
from transport.kafka.messages.create_partitions_response import CreatePartitionsTopicResult
from transport.kafka.messages.create_topics_request import CreatableTopic
from transport.kafka.messages.create_topics_response import CreatableTopicConfigs, CreatableTopicResult
from transport.kafka.messages.delete_topics_request import DeleteTopicState
from transport.kafka.messages.delete_topics_response import DeletableTopicResult
from transport.messages import NewPartitions, NewTopic, TopicError

TELLS_SETTINGS: Final = 5
"""The version of CreateTopics from which on its response tells what has been created."""

_HAS_TOPIC_IDS: Final = 6
"""The version of DeleteTopics from which on topics are named by name or by id."""

Outcomes = Mapping[str, TopicError] | ApiError
"""The outcome of each topic by its name."""


@frozen
class CreatedTopic:
    """What the answer to CreateTopics tells of a topic that exists now, or that could be created."""

    partitions: int
    replication_factor: int
    topic_id: str = ""
    configs: tuple[CreatableTopicConfigs, ...] = ()
    config_error: ErrorCode = field(default=ErrorCode.NONE)


# --- CreateTopics -----------------------------------------------------------------------------------------------


def new_topic(topic: CreatableTopic, partitions: int, replication_factor: int) -> NewTopic:
    """Return a topic to create. The numbers are those in effect; they do not count if it names its replicas."""
    replicas = {row.partition_index: row.broker_ids for row in topic.assignments}
    configs = tuple((config.name, config.value or "") for config in topic.configs)
    return NewTopic(
        topic.name,
        -1 if replicas else partitions,
        -1 if replicas else replication_factor,
        tuple(row for _, row in sorted(replicas.items())),
        configs,
    )


def create_topics_answer(
    request: kafka.CreateTopicsRequest, outcomes: Outcomes, created: Mapping[str, CreatedTopic] | None = None
) -> kafka.CreateTopicsResponse:
    """Return the outcome of each topic, with what is told of those in `created`."""
    known = {} if created is None else created
    results = [_created(topic.name, _outcome(outcomes, topic.name), known.get(topic.name)) for topic in request.topics]
    return kafka.CreateTopicsResponse(topics=tuple(results))


def _created(name: str, outcome: TopicError, created: CreatedTopic | None) -> CreatableTopicResult:
    if created is None or outcome.error is not ErrorCode.NONE:
        return CreatableTopicResult(name, error_code=outcome.error, error_message=outcome.message or None)
    return CreatableTopicResult(
        name,
        created.topic_id,
        error_message=None,
        topic_config_error_code=created.config_error,
        num_partitions=created.partitions,
        replication_factor=created.replication_factor,
        configs=created.configs,
    )


def _outcome(outcomes: Outcomes, name: str) -> TopicError:
    return TopicError(name, outcomes.code, outcomes.message) if isinstance(outcomes, ApiError) else outcomes[name]


# --- DeleteTopics -----------------------------------------------------------------------------------------------


def topics_to_delete(request: kafka.DeleteTopicsRequest, version: int) -> tuple[DeleteTopicState, ...]:
    """Return the topics that a request of any version names, each by its name or its id."""
    if version >= _HAS_TOPIC_IDS:
        return request.topics
    return tuple(DeleteTopicState(name) for name in request.topic_names)


def delete_topics_answer(
    topics: tuple[DeleteTopicState, ...], names: Mapping[str, str], outcomes: Outcomes, version: int
) -> kafka.DeleteTopicsResponse:
    """Return the outcome of each topic; `names` are those of topics that were named by their ids.

    Who may not delete a topic is not told the name that belongs to an id.
    """
    results = [_deleted(topic, names.get(topic.topic_id), outcomes, version) for topic in topics]
    return kafka.DeleteTopicsResponse(responses=tuple(results))


def _deleted(topic: DeleteTopicState, name: str | None, outcomes: Outcomes, version: int) -> DeletableTopicResult:
    if isinstance(outcomes, ApiError):
        return DeletableTopicResult(topic.name, topic.topic_id, _code_of_deletion(outcomes.code, version))
    found = topic.name if topic.name is not None else name
    if found is None:
        return DeletableTopicResult(None, topic.topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
    error = outcomes[found].error
    is_hidden = topic.name is None and error is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DeletableTopicResult(None if is_hidden else found, topic.topic_id, _code_of_deletion(error, version))


_HAS_DISABLED: Final = 3


def _code_of_deletion(error: ErrorCode, version: int) -> ErrorCode:
    is_new = error is ErrorCode.TOPIC_DELETION_DISABLED and version < _HAS_DISABLED
    return ErrorCode.INVALID_REQUEST if is_new else error


# --- CreatePartitions -------------------------------------------------------------------------------------------


def new_partitions(topic: CreatePartitionsTopic) -> NewPartitions:
    """Return the new number of partitions of a topic, and the replicas of those to add if they are named."""
    replicas = tuple(row.broker_ids for row in topic.assignments or ())
    return NewPartitions(topic.name, topic.count, replicas)


def create_partitions_answer(
    request: kafka.CreatePartitionsRequest, outcomes: Outcomes
) -> kafka.CreatePartitionsResponse:
    """Return the outcome of each topic, once if it was named twice."""
    names = dict.fromkeys(topic.name for topic in request.topics)
    told = [_outcome(outcomes, name) for name in names]
    results = [CreatePartitionsTopicResult(one.name, one.error, one.message or None) for one in told]
    return kafka.CreatePartitionsResponse(results=tuple(results))
