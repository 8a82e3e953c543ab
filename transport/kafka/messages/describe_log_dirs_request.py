"""DescribeLogDirsRequest in versions 0-5."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT32, STRING, At, Entity, Message, parse_versions


class DescribableLogDirTopic(Entity, frozen=True):
    topic: Annotated[str, STRING, At("0+")] = ""
    partitions: Annotated[tuple[int, ...], INT32, At("0+")] = ()


class DescribeLogDirsRequest(Message, frozen=True):
    api_key = 35
    versions = parse_versions("0-5")
    flexible = parse_versions("2+")

    topics: Annotated[tuple[DescribableLogDirTopic, ...] | None, At("0+", nullable="0+")] = ()
