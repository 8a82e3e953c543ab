"""AlterPartitionReassignmentsResponse in versions 0-1."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT16, INT32, STRING, At, Entity, Message, parse_versions


class ReassignablePartitionResponse(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""


class ReassignableTopicResponse(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    partitions: Annotated[tuple[ReassignablePartitionResponse, ...], At("0+")] = ()


class AlterPartitionReassignmentsResponse(Message, frozen=True):
    api_key = 45
    versions = parse_versions("0-1")
    flexible = parse_versions("0+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    allow_replication_factor_change: Annotated[bool, BOOL, At("1+", ignorable=True)] = True
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    responses: Annotated[tuple[ReassignableTopicResponse, ...], At("0+")] = ()
