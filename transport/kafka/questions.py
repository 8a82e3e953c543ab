"""The requests of Kafka's brokers to their controller: AlterPartition, ControlledShutdown and AllocateProducerIds.

`alter_partition` and `controlled_shutdown` turn a request into Klamm's; the functions whose names end with `_answer`
turn the answer back, in the version of the request. An ApiError becomes the error of the whole response.

- From version 2 on, AlterPartition names topics by id. A topic that is unknown here keeps its id in the answer.
- A leader whose proposal is refused with INVALID_REQUEST changes its ISR no more until it is elected again. For an ISR
  outside the replicas it is therefore INELIGIBLE_REPLICA. Versions 0 and 1 do not have that error, and are told
  OPERATION_NOT_ATTEMPTED.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages import alter_partition_response as answers
from transport.kafka.messages.alter_partition_request import PartitionData, TopicData
from transport.kafka.messages.controlled_shutdown_response import RemainingPartition
from transport.messages import (
    AllocateProducerIdsResponse,
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from transport.metadata import TopicPartition

_HAS_TOPIC_IDS: Final = 2
_HAS_EPOCHS: Final = 3

NameOf = Callable[[str], str | None]
"""Returns the name of the topic with an id, or None."""


def alter_partition(request: kafka.AlterPartitionRequest, version: int, name_of: NameOf) -> AlterPartitionRequest:
    """Return a leader's proposals. Those for topics that are unknown here are left out."""
    named = [(_name(topic, version, name_of), topic) for topic in request.topics]
    items = [
        _item(name, topic.topic_id, partition, version)
        for name, topic in named
        if name is not None
        for partition in topic.partitions
    ]
    return AlterPartitionRequest(request.broker_id, request.broker_epoch, tuple(items))


def alter_partition_answer(
    request: kafka.AlterPartitionRequest, version: int, name_of: NameOf, answer: AlterPartitionResponse | ApiError
) -> kafka.AlterPartitionResponse:
    """Return the outcome of each proposal, in the order of the request."""
    if isinstance(answer, ApiError):
        return kafka.AlterPartitionResponse(error_code=answer.code)
    results = {result.tp: result for result in answer.partitions}
    topics = []
    for topic in request.topics:
        name = _name(topic, version, name_of)
        found = [_outcome(name, partition, version, results) for partition in topic.partitions]
        topics.append(answers.TopicData(topic.topic_name, topic.topic_id, tuple(found)))
    return kafka.AlterPartitionResponse(topics=tuple(topics))


def controlled_shutdown(request: kafka.ControlledShutdownRequest, broker_epoch: int) -> ControlledShutdownRequest:
    """Return a broker's request; `broker_epoch` is the one in effect, for versions that do not say theirs."""
    epoch = broker_epoch if request.broker_epoch < 0 else request.broker_epoch
    return ControlledShutdownRequest(request.broker_id, epoch)


def controlled_shutdown_answer(answer: ControlledShutdownResponse | ApiError) -> kafka.ControlledShutdownResponse:
    """Return the partitions that the broker still leads, or the error."""
    if isinstance(answer, ApiError):
        return kafka.ControlledShutdownResponse(error_code=answer.code)
    remaining = tuple(RemainingPartition(tp.topic, tp.partition) for tp in answer.remaining)
    return kafka.ControlledShutdownResponse(remaining_partitions=remaining)


def allocate_producer_ids_answer(answer: AllocateProducerIdsResponse | ApiError) -> kafka.AllocateProducerIdsResponse:
    """Return a block of ids for producers, or the error."""
    if isinstance(answer, ApiError):
        return kafka.AllocateProducerIdsResponse(error_code=answer.code)
    return kafka.AllocateProducerIdsResponse(producer_id_start=answer.start, producer_id_len=answer.count)


def _name(topic: TopicData, version: int, name_of: NameOf) -> str | None:
    return name_of(topic.topic_id) if version >= _HAS_TOPIC_IDS else topic.topic_name


def _item(name: str, topic_id: str, partition: PartitionData, version: int) -> AlterPartitionItem:
    # A broker without KRaft sends the epoch -1 for each member, which says nothing.
    with_epochs = tuple(member.broker_id for member in partition.new_isr_with_epochs)
    return AlterPartitionItem(
        name,
        topic_id,
        partition.partition_index,
        partition.leader_epoch,
        with_epochs if version >= _HAS_EPOCHS else partition.new_isr,
        partition.partition_epoch,
        partition.leader_recovery_state,
    )


def _outcome(
    name: str | None,
    partition: PartitionData,
    version: int,
    results: Mapping[TopicPartition, AlterPartitionResult],
) -> answers.PartitionData:
    result = None if name is None else results.get(TopicPartition(name, partition.partition_index))
    if result is None:
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= _HAS_TOPIC_IDS else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return answers.PartitionData(partition.partition_index, unknown)
    return answers.PartitionData(
        result.partition,
        _code(result.error, version),
        result.leader,
        result.leader_epoch,
        result.isr,
        result.leader_recovery_state,
        result.partition_epoch,
    )


def _code(error: ErrorCode, version: int) -> ErrorCode:
    if error in (ErrorCode.INVALID_REQUEST, ErrorCode.INELIGIBLE_REPLICA):
        return ErrorCode.INELIGIBLE_REPLICA if version >= _HAS_TOPIC_IDS else ErrorCode.OPERATION_NOT_ATTEMPTED
    return error
