"""ListOffsetsResponse in versions 0-11."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, INT64, STRING, At, Entity, Message, parse_versions


class ListOffsetsPartitionResponse(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    old_style_offsets: Annotated[tuple[int, ...], INT64, At("0")] = ()
    timestamp: Annotated[int, INT64, At("1+")] = -1
    offset: Annotated[int, INT64, At("1+")] = -1
    leader_epoch: Annotated[int, INT32, At("4+")] = -1


class ListOffsetsTopicResponse(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    partitions: Annotated[tuple[ListOffsetsPartitionResponse, ...], At("0+")] = ()


class ListOffsetsResponse(Message, frozen=True):
    api_key = 2
    versions = parse_versions("0-11")
    flexible = parse_versions("6+")

    throttle_time_ms: Annotated[int, INT32, At("2+", ignorable=True)] = 0
    topics: Annotated[tuple[ListOffsetsTopicResponse, ...], At("0+")] = ()
