"""DescribeTopicPartitionsRequest in versions 0."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT32, STRING, At, Entity, Message, parse_versions


class TopicRequest(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""


class Cursor(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0+")] = ""
    partition_index: Annotated[int, INT32, At("0+")] = 0


class DescribeTopicPartitionsRequest(Message, frozen=True):
    api_key = 75
    versions = parse_versions("0")
    flexible = parse_versions("0+")

    topics: Annotated[tuple[TopicRequest, ...], At("0+")] = ()
    response_partition_limit: Annotated[int, INT32, At("0+")] = 2000
    cursor: Annotated[Cursor | None, At("0+", nullable="0+")] = None
