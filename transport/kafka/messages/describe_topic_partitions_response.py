"""DescribeTopicPartitionsResponse in versions 0."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT16, INT32, STRING, UUID, At, Entity, Message, parse_versions


class DescribeTopicPartitionsResponsePartition(Entity, frozen=True):
    error_code: Annotated[int, INT16, At("0+")] = 0
    partition_index: Annotated[int, INT32, At("0+")] = 0
    leader_id: Annotated[int, INT32, At("0+")] = 0
    leader_epoch: Annotated[int, INT32, At("0+", ignorable=True)] = -1
    replica_nodes: Annotated[tuple[int, ...], INT32, At("0+")] = ()
    isr_nodes: Annotated[tuple[int, ...], INT32, At("0+")] = ()
    eligible_leader_replicas: Annotated[tuple[int, ...] | None, INT32, At("0+", nullable="0+")] = None
    last_known_elr: Annotated[tuple[int, ...] | None, INT32, At("0+", nullable="0+")] = None
    offline_replicas: Annotated[tuple[int, ...], INT32, At("0+", ignorable=True)] = ()


class DescribeTopicPartitionsResponseTopic(Entity, frozen=True):
    error_code: Annotated[int, INT16, At("0+")] = 0
    name: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    topic_id: Annotated[str, UUID, At("0+", ignorable=True)] = ""
    is_internal: Annotated[bool, BOOL, At("0+", ignorable=True)] = False
    partitions: Annotated[tuple[DescribeTopicPartitionsResponsePartition, ...], At("0+")] = ()
    topic_authorized_operations: Annotated[int, INT32, At("0+")] = -2147483648


class Cursor(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0+")] = ""
    partition_index: Annotated[int, INT32, At("0+")] = 0


class DescribeTopicPartitionsResponse(Message, frozen=True):
    api_key = 75
    versions = parse_versions("0")
    flexible = parse_versions("0+")

    throttle_time_ms: Annotated[int, INT32, At("0+", ignorable=True)] = 0
    topics: Annotated[tuple[DescribeTopicPartitionsResponseTopic, ...], At("0+")] = ()
    next_cursor: Annotated[Cursor | None, At("0+", nullable="0+")] = None
