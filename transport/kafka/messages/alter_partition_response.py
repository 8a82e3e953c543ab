"""AlterPartitionResponse in versions 0-3."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT8, INT16, INT32, STRING, UUID, At, Entity, Message, parse_versions


class PartitionData(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    leader_id: Annotated[int, INT32, At("0+")] = 0
    leader_epoch: Annotated[int, INT32, At("0+")] = 0
    isr: Annotated[tuple[int, ...], INT32, At("0+")] = ()
    leader_recovery_state: Annotated[int, INT8, At("1+", ignorable=True)] = 0
    partition_epoch: Annotated[int, INT32, At("0+")] = 0


class TopicData(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0-1", ignorable=True)] = ""
    topic_id: Annotated[str, UUID, At("2+", ignorable=True)] = ""
    partitions: Annotated[tuple[PartitionData, ...], At("0+")] = ()


class AlterPartitionResponse(Message, frozen=True):
    api_key = 56
    versions = parse_versions("0-3")
    flexible = parse_versions("0+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    topics: Annotated[tuple[TopicData, ...], At("0+")] = ()
