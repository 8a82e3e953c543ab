"""ListPartitionReassignmentsResponse in versions 0."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, At, Entity, Message, parse_versions


class OngoingPartitionReassignment(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("0+")] = 0
    replicas: Annotated[tuple[int, ...], INT32, At("0+")] = ()
    adding_replicas: Annotated[tuple[int, ...], INT32, At("0+")] = ()
    removing_replicas: Annotated[tuple[int, ...], INT32, At("0+")] = ()


class OngoingTopicReassignment(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    partitions: Annotated[tuple[OngoingPartitionReassignment, ...], At("0+")] = ()


class ListPartitionReassignmentsResponse(Message, frozen=True):
    api_key = 46
    versions = parse_versions("0")
    flexible = parse_versions("0+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    topics: Annotated[tuple[OngoingTopicReassignment, ...], At("0+")] = ()
