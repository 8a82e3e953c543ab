"""DescribeShareGroupOffsetsRequest in versions 0-1."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT32, STRING, At, Entity, Message, parse_versions


class DescribeShareGroupOffsetsRequestTopic(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0+")] = ""
    partitions: Annotated[tuple[int, ...], INT32, At("0+")] = ()


class DescribeShareGroupOffsetsRequestGroup(Entity, frozen=True):
    group_id: Annotated[str, STRING, At("0+")] = ""
    topics: Annotated[tuple[DescribeShareGroupOffsetsRequestTopic, ...] | None, At("0+", nullable="0+")] = ()


class DescribeShareGroupOffsetsRequest(Message, frozen=True):
    api_key = 90
    versions = parse_versions("0-1")
    flexible = parse_versions("0+")

    groups: Annotated[tuple[DescribeShareGroupOffsetsRequestGroup, ...], At("0+")] = ()
