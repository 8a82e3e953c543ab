"""The requests about topics and moves that Kafka's own controller refuses, in its order and its words. Pure.

The tools of Kafka show these messages to people, and scripts look for them. The event queue judges each request again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from controller.model.context import ControllerContext
from controller.model.reassignment import reassign_to
from transport.errors import ErrorCode, Fault
from transport.kafka.messages.create_partitions_request import CreatePartitionsAssignment, CreatePartitionsTopic
from transport.kafka.messages.create_topics_request import CreatableTopic
from transport.kafka.topic_requests import new_topic
from transport.kafka.topic_settings import topic_settings_fault
from transport.messages import NewTopic, PartitionError, ReassignablePartition, TopicError
from transport.metadata import is_topic_name

UNSET: Final = -1
"""The number of partitions or replicas that leaves it to the cluster's settings."""

CLUSTER_METADATA: Final = "__cluster_metadata"
MAX_NAME_LENGTH: Final = 249

_LARGEST_PLAIN: Final = 4
"""The most members of a set that Scala writes as `Set(1, 2)` rather than `HashSet(1, 2)`."""


def repeated_or_prohibited(topics: Sequence[CreatableTopic]) -> dict[str, TopicError]:
    """Return the refusals of topics that are refused whoever asks: named twice, or not a client's to create."""
    asked = Counter(topic.name for topic in topics)
    faults = {name: "Found multiple entries for this topic." for name, count in asked.items() if count > 1}
    if CLUSTER_METADATA in asked:
        faults[CLUSTER_METADATA] = f"Creation of internal topic {CLUSTER_METADATA} is prohibited."
    return {name: TopicError(name, ErrorCode.INVALID_REQUEST, text) for name, text in faults.items()}


def judge_new_topic(context: ControllerContext, topic: CreatableTopic) -> NewTopic | TopicError:
    """Return a topic to create, with the cluster's settings where it leaves a choice, or why it is refused."""
    defaults = context.kafka.topic_defaults()
    partitions = defaults.partitions if topic.num_partitions == UNSET else topic.num_partitions
    factor = defaults.replication_factor if topic.replication_factor == UNSET else topic.replication_factor
    fault = (
        _exists(context, topic.name)
        or _contradiction(topic)
        or _count_fault(context, topic, partitions, factor)
        or _name_fault(context, topic.name)
        or _assignment_fault(topic)
        or _settings_fault(context, topic)
    )
    return new_topic(topic, partitions, factor) if fault is None else TopicError(topic.name, *fault)


def _exists(context: ControllerContext, name: str) -> Fault | None:
    is_there = name in context.topics and name not in context.deletions
    return (ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.") if is_there else None


def _contradiction(topic: CreatableTopic) -> Fault | None:
    without_value = [config.name for config in topic.configs if config.value is None]
    if without_value:
        return ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(without_value)}"
    if topic.assignments and (topic.num_partitions, topic.replication_factor) != (UNSET, UNSET):
        text = "Both numPartitions or replicationFactor and replicasAssignments were set."
        return ErrorCode.INVALID_REQUEST, f"{text} Both cannot be used at the same time."
    return None


def _count_fault(context: ControllerContext, topic: CreatableTopic, partitions: int, factor: int) -> Fault | None:
    if topic.assignments:
        return None
    able = len(context.able_brokers())
    if partitions <= 0:
        return ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."
    if factor <= 0:
        return ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."
    if factor > able:
        text = f"Replication factor: {factor} larger than available brokers: {able}."
        return ErrorCode.INVALID_REPLICATION_FACTOR, text
    return None


def _name_fault(context: ControllerContext, name: str) -> Fault | None:
    if not is_topic_name(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {_illegal(name)}"
    if name in context.deletions:
        return ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion."
    if "." not in name and "_" not in name:
        return None
    alike = [other for other in context.topics if other.replace(".", "_") == name.replace(".", "_")]
    text = f"Topic '{name}' collides with existing topics: {', '.join(alike)}"
    return (ErrorCode.INVALID_TOPIC_EXCEPTION, text) if alike else None


def _illegal(name: str) -> str:
    if not name:
        return "the empty string is not allowed"
    if name in {".", ".."}:
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"


def _assignment_fault(topic: CreatableTopic) -> Fault | None:
    if not topic.assignments:
        return None
    replicas = {row.partition_index: row.broker_ids for row in topic.assignments}
    text = None
    if len({len(brokers) for brokers in replicas.values()}) != 1:
        text = "All partitions should have the same number of replicas"
    elif any(len(set(brokers)) != len(brokers) for brokers in replicas.values()):
        text = f"Duplicate replica assignment found: {_shown(replicas)}"
    elif sorted(replicas) != list(range(len(replicas))):
        text = "partitions should be a consecutive 0-based integer sequence"
    return None if text is None else (ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def _shown(replicas: Mapping[int, Sequence[int]]) -> str:
    """Return an assignment as Scala writes it."""
    rows = (f"{number} -> {_buffer(brokers)}" for number, brokers in replicas.items())
    return f"HashMap({', '.join(rows)})"


def _settings_fault(context: ControllerContext, topic: CreatableTopic) -> Fault | None:
    configs = [(config.name, config.value or "") for config in topic.configs]
    text = topic_settings_fault(configs, has_remote_storage=context.kafka.topic_defaults().has_remote_storage)
    return None if text is None else (ErrorCode.INVALID_CONFIG, text)


# --- more partitions ----------------------------------------------------------------------------------------------


def repeated(topics: Sequence[CreatePartitionsTopic]) -> dict[str, TopicError]:
    """Return the refusals of topics that are named twice in a request for more partitions."""
    asked = Counter(topic.name for topic in topics)
    text = "Duplicate topic in request."
    return {name: TopicError(name, ErrorCode.INVALID_REQUEST, text) for name, count in asked.items() if count > 1}


def growth_fault(context: ControllerContext, topic: CreatePartitionsTopic) -> Fault | None:
    """Return why a topic cannot have more partitions as asked, None if it can."""
    name = topic.name
    if name in context.deletions:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion."
    known = context.topics.get(name)
    if known is None or not known.znode.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
    partitions = known.znode.partitions
    if any(assignment.is_being_reassigned for assignment in partitions.values()):
        text = f"A partition reassignment is in progress for the topic '{name}'."
        return ErrorCode.REASSIGNMENT_IN_PROGRESS, text
    count = len(partitions)
    if topic.count < count:
        text = f"Topic currently has {count} partitions, which is higher than the requested {topic.count}."
        return ErrorCode.INVALID_PARTITIONS, text
    if topic.count == count:
        return ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partitions."
    if topic.assignments is None or 0 not in partitions:
        return None
    factor = len(partitions[0].replicas)
    return _added_fault(context, topic.assignments, range(count, topic.count), factor)


def _added_fault(
    context: ControllerContext, rows: Sequence[CreatePartitionsAssignment], added: range, factor: int
) -> Fault | None:
    unknown = dict.fromkeys(id_ for row in rows for id_ in row.broker_ids if id_ not in context.brokers)
    if unknown:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Unknown broker(s) in replica assignment: {_joined(unknown)}."
    if len(rows) != len(added):
        counts = f"Increasing the number of partitions by {len(added)} but {len(rows)} assignments provided."
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, counts
    replicas = {number: row.broker_ids for number, row in zip(added, rows, strict=True)}
    for number, brokers in replicas.items():
        if (text := _row_fault(number, brokers)) is not None:
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
    bad = {number: len(brokers) for number, brokers in replicas.items() if len(brokers) != factor}
    if not bad:
        return None
    return ErrorCode.INVALID_REPLICA_ASSIGNMENT, (
        f"Inconsistent replication factor between partitions, partition 0 has {factor} while partitions "
        f"[{_joined(bad)}] have replication factors [{_joined(bad.values())}], respectively."
    )


def _row_fault(number: int, replicas: Sequence[int]) -> str | None:
    if not replicas:
        return f"Cannot have replication factor of 0 for partition id {number}."
    if len(set(replicas)) != len(replicas):
        shown = _joined(replicas)
        return f"Duplicate brokers not allowed in replica assignment: {shown} for partition id {number}."
    return None


# --- moves --------------------------------------------------------------------------------------------------------


def move_refusal(context: ControllerContext, item: ReassignablePartition) -> PartitionError | None:
    """Return why replicas are refused whatever the partition is, or None."""
    if item.replicas is None:
        return None
    text = _replicas_fault(context, item, item.replicas)
    return None if text is None else PartitionError(*item.tp, ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def _replicas_fault(context: ControllerContext, item: ReassignablePartition, replicas: tuple[int, ...]) -> str | None:
    if not replicas:
        return "Empty replica list specified in partition reassignment."
    if len(set(replicas)) != len(replicas):
        return f"Duplicate replica ids in partition reassignment replica list: {_buffer(replicas)}"
    if min(replicas) < 0:
        return f"Invalid broker id in replica list: {_buffer(replicas)}"
    adding = reassign_to(context.assignment(item.tp), replicas).adding_replicas
    live = context.able_brokers()
    if set(adding) <= set(live):
        return None
    kind = "Set" if len(live) <= _LARGEST_PLAIN else "HashSet"
    shown = f"Replica list: {_buffer(adding)}, live broker list: {kind}({_joined(live)})"
    return f"Replica assignment has brokers that are not alive. {shown}"


def _buffer(numbers: Iterable[int]) -> str:
    """Return numbers as Scala writes a list of them."""
    return f"ArrayBuffer({_joined(numbers)})"


def _joined(numbers: Iterable[int]) -> str:
    """Return numbers as Scala writes those of a list."""
    return ", ".join(map(str, numbers))
