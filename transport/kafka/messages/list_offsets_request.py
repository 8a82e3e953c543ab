"""ListOffsetsRequest in versions 0-11."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT8, INT32, INT64, STRING, At, Entity, Message, parse_versions


class ListOffsetsPartition(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("0+")] = 0
    current_leader_epoch: Annotated[int, INT32, At("4+", ignorable=True)] = -1
    timestamp: Annotated[int, INT64, At("0+")] = 0
    max_num_offsets: Annotated[int, INT32, At("0")] = 1


class ListOffsetsTopic(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    partitions: Annotated[tuple[ListOffsetsPartition, ...], At("0+")] = ()


class ListOffsetsRequest(Message, frozen=True):
    api_key = 2
    versions = parse_versions("0-11")
    flexible = parse_versions("6+")

    replica_id: Annotated[int, INT32, At("0+")] = 0
    isolation_level: Annotated[int, INT8, At("2+")] = 0
    topics: Annotated[tuple[ListOffsetsTopic, ...], At("0+")] = ()
    timeout_ms: Annotated[int, INT32, At("10+", ignorable=True)] = 0
