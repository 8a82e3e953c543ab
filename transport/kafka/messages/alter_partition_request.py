"""AlterPartitionRequest in versions 0-3."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT8, INT32, INT64, STRING, UUID, At, Entity, Message, parse_versions


class BrokerState(Entity, frozen=True):
    broker_id: Annotated[int, INT32, At("3+")] = 0
    broker_epoch: Annotated[int, INT64, At("3+")] = -1


class PartitionData(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("0+")] = 0
    leader_epoch: Annotated[int, INT32, At("0+")] = 0
    new_isr: Annotated[tuple[int, ...], INT32, At("0-2")] = ()
    new_isr_with_epochs: Annotated[tuple[BrokerState, ...], At("3+")] = ()
    leader_recovery_state: Annotated[int, INT8, At("1+")] = 0
    partition_epoch: Annotated[int, INT32, At("0+")] = 0


class TopicData(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0-1", ignorable=True)] = ""
    topic_id: Annotated[str, UUID, At("2+", ignorable=True)] = ""
    partitions: Annotated[tuple[PartitionData, ...], At("0+")] = ()


class AlterPartitionRequest(Message, frozen=True):
    api_key = 56
    versions = parse_versions("0-3")
    flexible = parse_versions("0+")

    broker_id: Annotated[int, INT32, At("0+")] = 0
    broker_epoch: Annotated[int, INT64, At("0+")] = -1
    topics: Annotated[tuple[TopicData, ...], At("0+")] = ()
