"""DescribeQuorumRequest in versions 0-2."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT32, STRING, At, Entity, Message, parse_versions


class PartitionData(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("0+")] = 0


class TopicData(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0+")] = ""
    partitions: Annotated[tuple[PartitionData, ...], At("0+")] = ()


class DescribeQuorumRequest(Message, frozen=True):
    api_key = 55
    versions = parse_versions("0-2")
    flexible = parse_versions("0+")

    topics: Annotated[tuple[TopicData, ...], At("0+")] = ()
