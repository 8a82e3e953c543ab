"""The calls that read from a cluster of Kafka's: metadata, reassignments, settings, log directories.

What Kafka does not tell is UNKNOWN: the epoch of the controller, and the versions of partition states.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from attrs import frozen

from transport.acls import Operation, needs
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.calls import Call, fault_of, require_success
from transport.kafka.log_dirs import describe_log_dirs, told_log_dirs
from transport.kafka.messages.describe_configs_request import DescribeConfigsResource
from transport.kafka.messages.describe_configs_response import DescribeConfigsResourceResult, DescribeConfigsResult
from transport.kafka.messages.describe_quorum_request import PartitionData, TopicData
from transport.kafka.messages.describe_topic_partitions_request import Cursor as RequestCursor, TopicRequest
from transport.kafka.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponseTopic
from transport.kafka.messages.list_partition_reassignments_request import ListPartitionReassignmentsTopics
from transport.kafka.messages.metadata_request import MetadataRequestTopic
from transport.kafka.messages.metadata_response import MetadataResponseTopic
from transport.kafka.volume import HIDDEN, ToldLogDir
from transport.messages import (
    UNKNOWN,
    BrokerEndpoint,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    DescribeLogDirsRequest,
    MetadataResponse,
    PartitionState,
    ResourceConfigs,
    TopicError,
)
from transport.metadata import ReplicaAssignment, TopicPartition

DescribedTopic = MetadataResponseTopic | DescribeTopicPartitionsResponseTopic

Moves = dict[TopicPartition, ReplicaAssignment]

_DESCRIBE: Final = needs(Operation.DESCRIBE)
"""The text where the cluster may not be described."""

_SOURCES: Final = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "CLIENT_METRICS_CONFIG",
    8: "GROUP_CONFIG",
}


# --- brokers and partitions -------------------------------------------------------------------------------------


def metadata(topics: Sequence[str] | None) -> Call[MetadataResponse]:
    """Ask for the brokers, and for the partitions of all topics or of those named."""
    named = None if topics is None else tuple(MetadataRequestTopic(name=name) for name in topics)
    asked = kafka.MetadataRequest(named, allow_auto_topic_creation=False)
    return Call.of(asked, kafka.MetadataResponse, _metadata)


def _metadata(answer: kafka.MetadataResponse) -> MetadataResponse:
    require_success(answer.error_code)
    endpoints = (BrokerEndpoint(one.node_id, one.host, one.port, one.rack) for one in answer.brokers)
    brokers = tuple(sorted(endpoints, key=lambda one: one.id))
    controller = next((one for one in brokers if one.id == answer.controller_id), None)
    states = tuple(state for topic in answer.topics for state in _states(topic))
    return MetadataResponse(controller, UNKNOWN, brokers, states, tuple(_refused(answer.topics)))


def cluster_id() -> Call[str | None]:
    """Ask for the id of the cluster."""
    asked = kafka.MetadataRequest((), allow_auto_topic_creation=False)
    return Call.of(asked, kafka.MetadataResponse, _cluster_id)


def _cluster_id(answer: kafka.MetadataResponse) -> str | None:
    require_success(answer.error_code)
    return answer.cluster_id


PAGE_PARTITIONS: Final = 2000
"""The most partitions of a page. Brokers give no more, unless max.request.partition.size.limit says so."""

Cursor = tuple[str, int]
"""The topic and the partition with which the next page begins."""


@frozen
class Page:
    """Some of the partitions that were asked for, the topics that are not described, and where the next page begins."""

    states: tuple[PartitionState, ...]
    refused: tuple[TopicError, ...]
    following: Cursor | None


def page(topics: Sequence[str] | None, begins: Cursor | None) -> Call[Page]:
    """Ask for a page of the partitions of all topics or of those named (KIP-966). Only brokers of KRaft offer this."""
    named = tuple(map(TopicRequest, sorted(topics or ())))
    cursor = None if begins is None else RequestCursor(*begins)
    asked = kafka.DescribeTopicPartitionsRequest(named, PAGE_PARTITIONS, cursor)
    return Call.of(asked, kafka.DescribeTopicPartitionsResponse, _page)


def _page(answer: kafka.DescribeTopicPartitionsResponse) -> Page:
    states = tuple(state for topic in answer.topics for state in _states(topic))
    following = answer.next_cursor
    cursor = None if following is None else (following.topic_name, following.partition_index)
    return Page(states, tuple(_refused(answer.topics)), cursor)


def _states(topic: DescribedTopic) -> Iterator[PartitionState]:
    for one in topic.partitions:
        yield PartitionState(
            topic.name or "",
            topic.topic_id,
            one.partition_index,
            UNKNOWN,
            one.leader_id,
            one.leader_epoch,
            one.isr_nodes,
            UNKNOWN,
            one.replica_nodes,
            offline_replicas=one.offline_replicas,
        )


_IS_ABSENT: Final = frozenset({ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})


def _refused(topics: Iterable[DescribedTopic]) -> Iterator[TopicError]:
    for topic in topics:
        error, _ = fault_of(topic.error_code, None)
        if error not in _IS_ABSENT:
            name = topic.name or topic.topic_id
            is_hidden = error is ErrorCode.TOPIC_AUTHORIZATION_FAILED
            text = needs(Operation.DESCRIBE, name) if is_hidden else f"Kafka does not describe topic {name} to us"
            yield TopicError(name, error, text)


_QUORUM: Final = "__cluster_metadata"
"""The topic of KRaft's metadata. The leader of its only partition is the controller."""


def quorum() -> Call[tuple[BrokerEndpoint, int]]:
    """Ask for the controller of a cluster under KRaft, and its epoch. Other clusters do not offer this."""
    asked = kafka.DescribeQuorumRequest((TopicData(_QUORUM, (PartitionData(0),)),))
    return Call.of(asked, kafka.DescribeQuorumResponse, _controller)


def _controller(answer: kafka.DescribeQuorumResponse) -> tuple[BrokerEndpoint, int]:
    require_success(answer.error_code, answer.error_message, _DESCRIBE)
    [partition] = [partition for topic in answer.topics for partition in topic.partitions]
    require_success(partition.error_code, partition.error_message, _DESCRIBE)
    leader = partition.leader_id
    listeners = (one for node in answer.nodes if node.node_id == leader for one in node.listeners)
    # Releases before 3.9 do not tell addresses.
    at = next(((one.host, one.port) for one in listeners), ("", UNKNOWN))
    return BrokerEndpoint(leader, *at), partition.leader_epoch


# --- reassignments ----------------------------------------------------------------------------------------------


def reassignments(partitions: Iterable[TopicPartition] | None, timeout_ms: int) -> Call[Moves]:
    """Ask for the reassignments in progress, of all partitions or of those named."""
    named = None
    if partitions is not None:
        groups = by_topic(partitions)
        named = tuple(ListPartitionReassignmentsTopics(topic, tuple(numbers)) for topic, numbers in groups.items())
    asked = kafka.ListPartitionReassignmentsRequest(timeout_ms, named)
    return Call.of(asked, kafka.ListPartitionReassignmentsResponse, _reassignments)


def _reassignments(answer: kafka.ListPartitionReassignmentsResponse) -> Moves:
    require_success(answer.error_code, answer.error_message, _DESCRIBE)
    return {
        TopicPartition(topic.name, one.partition_index): ReplicaAssignment(
            one.replicas, one.adding_replicas, one.removing_replicas
        )
        for topic in answer.topics
        for one in topic.partitions
    }


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the numbers of partitions by topic."""
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for tp in partitions:
        numbers[tp.topic].append(tp.partition)
    return dict(numbers)


# --- settings ---------------------------------------------------------------------------------------------------


def configs(
    resources: Iterable[ConfigResource], names: Sequence[str] | None = None
) -> Call[tuple[ResourceConfigs, ...]]:
    """Ask for the settings in effect, all or those named. Only a broker itself knows its own."""
    keys = None if names is None else tuple(names)
    wanted = tuple(DescribeConfigsResource(int(one.type), one.name, keys) for one in resources)
    return Call.of(kafka.DescribeConfigsRequest(wanted), kafka.DescribeConfigsResponse, _configs)


def _configs(answer: kafka.DescribeConfigsResponse) -> tuple[ResourceConfigs, ...]:
    return tuple(map(_configs_of, answer.results))


def _configs_of(result: DescribeConfigsResult) -> ResourceConfigs:
    resource = ConfigResource(ConfigResourceType(result.resource_type), result.resource_name)
    denial = denial_of(Operation.DESCRIBE_CONFIGS, resource)
    error, message = fault_of(result.error_code, result.error_message, denial)
    entries = sorted(map(_entry, result.configs), key=lambda entry: entry.name)
    return ResourceConfigs(resource, tuple(entries), error, message)


def denial_of(operation: Operation, resource: ConfigResource) -> str:
    """Return the text of a denial of an operation on settings: those of brokers belong to the cluster."""
    return needs(operation, resource.name if resource.type is ConfigResourceType.TOPIC else None)


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    value = HIDDEN if config.is_sensitive else config.value or ""
    return ConfigEntry(config.name, value, _SOURCES.get(config.config_source, "UNKNOWN"))


# --- log directories --------------------------------------------------------------------------------------------


def log_dirs(partitions: Sequence[TopicPartition] | None) -> Call[tuple[ToldLogDir, ...]]:
    """Ask a broker for its log directories, with all logs or those of the partitions named."""
    named = DescribeLogDirsRequest(None if partitions is None else tuple(partitions))
    return Call.of(describe_log_dirs(named), kafka.DescribeLogDirsResponse, told_log_dirs)
