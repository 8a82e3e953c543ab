"""ListPartitionReassignmentsRequest in versions 0."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT32, STRING, At, Entity, Message, parse_versions


class ListPartitionReassignmentsTopics(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    partition_indexes: Annotated[tuple[int, ...], INT32, At("0+")] = ()


class ListPartitionReassignmentsRequest(Message, frozen=True):
    api_key = 46
    versions = parse_versions("0")
    flexible = parse_versions("0+")

    timeout_ms: Annotated[int, INT32, At("0+")] = 60000
    topics: Annotated[tuple[ListPartitionReassignmentsTopics, ...] | None, At("0+", nullable="0+")] = None
