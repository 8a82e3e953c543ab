"""AlterPartitionReassignmentsRequest in versions 0-1."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT32, STRING, At, Entity, Message, parse_versions


class ReassignablePartition(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("0+")] = 0
    replicas: Annotated[tuple[int, ...] | None, INT32, At("0+", nullable="0+")] = None


class ReassignableTopic(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    partitions: Annotated[tuple[ReassignablePartition, ...], At("0+")] = ()


class AlterPartitionReassignmentsRequest(Message, frozen=True):
    api_key = 45
    versions = parse_versions("0-1")
    flexible = parse_versions("0+")

    timeout_ms: Annotated[int, INT32, At("0+")] = 60000
    allow_replication_factor_change: Annotated[bool, BOOL, At("1+")] = True
    topics: Annotated[tuple[ReassignableTopic, ...], At("0+")] = ()
