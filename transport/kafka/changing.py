"""The calls that change a cluster of Kafka's: topics, reassignments, elections, settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from transport.acls import Operation, needs
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.calls import Call, fault_of, require_success
from transport.kafka.messages.alter_partition_reassignments_request import (
    ReassignablePartition as KafkaPartition,
    ReassignableTopic,
)
from transport.kafka.messages.alter_replica_log_dirs_request import AlterReplicaLogDir, AlterReplicaLogDirTopic
from transport.kafka.messages.create_partitions_request import CreatePartitionsAssignment, CreatePartitionsTopic
from transport.kafka.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from transport.kafka.messages.delete_topics_request import DeleteTopicState
from transport.kafka.messages.elect_leaders_request import TopicPartitions
from transport.kafka.messages.incremental_alter_configs_request import (
    AlterableConfig as KafkaConfig,
    AlterConfigsResource as KafkaResource,
)
from transport.kafka.reading import by_topic, denial_of
from transport.messages import (
    AlterConfigsResource,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    NewPartitions,
    NewTopic,
    PartitionError,
    ReassignablePartition,
    ResourceError,
    TopicError,
)
from transport.metadata import TopicPartition

_HAS_TOPIC_STATES: Final = 6
"""The first version of DeleteTopics that names or identifies each topic."""

_ALTER: Final = needs(Operation.ALTER)
"""The text where moves, elections and log directories may not be changed."""

Topics = tuple[TopicError, ...]
Partitions = tuple[PartitionError, ...]


# --- topics -----------------------------------------------------------------------------------------------------


def create_topics(topics: Iterable[NewTopic], timeout_ms: int, *, validate_only: bool) -> Call[Topics]:
    """Create topics, or only check whether they could be created."""
    asked = kafka.CreateTopicsRequest(tuple(map(_new_topic, topics)), timeout_ms, validate_only)
    return Call.of(
        asked,
        kafka.CreateTopicsResponse,
        lambda answer: _outcomes(
            Operation.CREATE, ((one.name, one.error_code, one.error_message) for one in answer.topics)
        ),
    )


def _new_topic(new: NewTopic) -> CreatableTopic:
    replicas = tuple(CreatableReplicaAssignment(number, brokers) for number, brokers in enumerate(new.assignments))
    configs = tuple(CreatableTopicConfig(name, value) for name, value in new.configs)
    # Kafka takes either counts or an assignment.
    counts = (-1, -1) if replicas else (new.partitions, new.replication_factor)
    return CreatableTopic(new.name, *counts, replicas, configs)


def create_partitions(topics: Iterable[NewPartitions], timeout_ms: int, *, validate_only: bool) -> Call[Topics]:
    """Add partitions to topics, or only check whether they could be added."""
    asked = kafka.CreatePartitionsRequest(tuple(map(_more, topics)), timeout_ms, validate_only)
    return Call.of(
        asked,
        kafka.CreatePartitionsResponse,
        lambda answer: _outcomes(
            Operation.ALTER, ((one.name, one.error_code, one.error_message) for one in answer.results)
        ),
    )


def _more(more: NewPartitions) -> CreatePartitionsTopic:
    replicas = tuple(map(CreatePartitionsAssignment, more.assignments))
    return CreatePartitionsTopic(more.name, more.count, replicas or None)


def delete_topics(names: Sequence[str], timeout_ms: int) -> Call[Topics]:
    """Delete topics."""

    def write(version: int) -> kafka.DeleteTopicsRequest:
        if version < _HAS_TOPIC_STATES:
            return kafka.DeleteTopicsRequest(topic_names=tuple(names), timeout_ms=timeout_ms)
        return kafka.DeleteTopicsRequest(tuple(map(DeleteTopicState, names)), timeout_ms=timeout_ms)

    return Call(
        kafka.DeleteTopicsRequest,
        kafka.DeleteTopicsResponse,
        write,
        lambda answer: _outcomes(
            Operation.DELETE, ((one.name or "", one.error_code, one.error_message) for one in answer.responses)
        ),
    )


def _outcomes(operation: Operation, answered: Iterable[tuple[str, int, str | None]]) -> Topics:
    """Return the outcome of an operation for each topic.

    Raises ApiError if the node is not the controller: it has done nothing.
    """
    outcomes = tuple(TopicError(name, *fault_of(code, text, needs(operation, name))) for name, code, text in answered)
    if any(one.error is ErrorCode.NOT_CONTROLLER for one in outcomes):
        raise ApiError(ErrorCode.NOT_CONTROLLER)
    return outcomes


# --- reassignments and elections --------------------------------------------------------------------------------


def reassign(partitions: Sequence[ReassignablePartition], timeout_ms: int) -> Call[Partitions]:
    """Begin, override or cancel reassignments."""
    targets = {item.tp: item.replicas for item in partitions}
    topics = tuple(
        ReassignableTopic(
            topic, tuple(KafkaPartition(number, targets[TopicPartition(topic, number)]) for number in numbers)
        )
        for topic, numbers in by_topic(targets).items()
    )
    asked = kafka.AlterPartitionReassignmentsRequest(timeout_ms, topics=topics)
    return Call.of(asked, kafka.AlterPartitionReassignmentsResponse, _reassigned)


def _reassigned(answer: kafka.AlterPartitionReassignmentsResponse) -> Partitions:
    require_success(answer.error_code, answer.error_message, _ALTER)
    return tuple(
        PartitionError(topic.name, one.partition_index, *fault_of(one.error_code, one.error_message, _ALTER))
        for topic in answer.responses
        for one in topic.partitions
    )


def elect(kind: ElectionType, partitions: Iterable[TopicPartition] | None, timeout_ms: int) -> Call[Partitions]:
    """Elect leaders of the partitions named, or of all; the answer then has those that needed it."""
    named = None
    if partitions is not None:
        named = tuple(TopicPartitions(topic, tuple(numbers)) for topic, numbers in by_topic(partitions).items())

    def read(answer: kafka.ElectLeadersResponse) -> Partitions:
        require_success(answer.error_code, denial=_ALTER)
        found = (
            PartitionError(topic.topic, one.partition_id, *fault_of(one.error_code, one.error_message, _ALTER))
            for topic in answer.replica_election_results
            for one in topic.partition_result
        )
        return tuple(one for one in found if named is not None or one.error is not ErrorCode.ELECTION_NOT_NEEDED)

    return Call.of(kafka.ElectLeadersRequest(int(kind), named, timeout_ms), kafka.ElectLeadersResponse, read)


# --- log directories --------------------------------------------------------------------------------------------


def move_logs(directories: Mapping[TopicPartition, str]) -> Call[Partitions]:
    """Let a broker move logs to other directories of it, or remember where to create them (KIP-113)."""
    by_path: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for tp, path in directories.items():
        by_path[path].append(tp)
    dirs = tuple(
        AlterReplicaLogDir(path, tuple(AlterReplicaLogDirTopic(name, tuple(n)) for name, n in by_topic(tps).items()))
        for path, tps in by_path.items()
    )
    return Call.of(kafka.AlterReplicaLogDirsRequest(dirs), kafka.AlterReplicaLogDirsResponse, _logs_moved)


def _logs_moved(answer: kafka.AlterReplicaLogDirsResponse) -> Partitions:
    return tuple(
        PartitionError(topic.topic_name, one.partition_index, *fault_of(one.error_code, None, _ALTER))
        for topic in answer.results
        for one in topic.partitions
    )


# --- settings ---------------------------------------------------------------------------------------------------


def alter_configs(
    resources: Iterable[AlterConfigsResource], *, validate_only: bool = False
) -> Call[tuple[ResourceError, ...]]:
    """Change settings, those of one resource all or not at all, or only check the changes."""
    asked = kafka.IncrementalAlterConfigsRequest(tuple(map(_changes, resources)), validate_only)
    return Call.of(asked, kafka.IncrementalAlterConfigsResponse, _altered)


def _changes(wanted: AlterConfigsResource) -> KafkaResource:
    configs = (
        KafkaConfig(one.name, int(one.operation), None if one.operation is ConfigOperation.DELETE else one.value)
        for one in wanted.configs
    )
    return KafkaResource(int(wanted.resource.type), wanted.resource.name, tuple(configs))


def _altered(answer: kafka.IncrementalAlterConfigsResponse) -> tuple[ResourceError, ...]:
    resources = [ConfigResource(ConfigResourceType(one.resource_type), one.resource_name) for one in answer.responses]
    return tuple(
        ResourceError(
            resource, *fault_of(one.error_code, one.error_message, denial_of(Operation.ALTER_CONFIGS, resource))
        )
        for resource, one in zip(resources, answer.responses, strict=True)
    )
