"""DescribeShareGroupOffsetsResponse in versions 0-1."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, INT64, STRING, UUID, At, Entity, Message, parse_versions


class DescribeShareGroupOffsetsResponsePartition(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("0+")] = 0
    start_offset: Annotated[int, INT64, At("0+")] = 0
    leader_epoch: Annotated[int, INT32, At("0+")] = 0
    lag: Annotated[int, INT64, At("1+", ignorable=True)] = -1
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = None


class DescribeShareGroupOffsetsResponseTopic(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0+")] = ""
    topic_id: Annotated[str, UUID, At("0+")] = ""
    partitions: Annotated[tuple[DescribeShareGroupOffsetsResponsePartition, ...], At("0+")] = ()


class DescribeShareGroupOffsetsResponseGroup(Entity, frozen=True):
    group_id: Annotated[str, STRING, At("0+")] = ""
    topics: Annotated[tuple[DescribeShareGroupOffsetsResponseTopic, ...], At("0+")] = ()
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = None


class DescribeShareGroupOffsetsResponse(Message, frozen=True):
    api_key = 90
    versions = parse_versions("0-1")
    flexible = parse_versions("0+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    groups: Annotated[tuple[DescribeShareGroupOffsetsResponseGroup, ...], At("0+")] = ()
