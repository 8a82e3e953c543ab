"""OffsetFetchResponse in versions 0-10."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, INT64, STRING, UUID, At, Entity, Message, parse_versions


class OffsetFetchResponsePartition(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("0-7")] = 0
    committed_offset: Annotated[int, INT64, At("0-7")] = 0
    committed_leader_epoch: Annotated[int, INT32, At("5-7", ignorable=True)] = -1
    metadata: Annotated[str | None, STRING, At("0-7", nullable="0-7")] = ""
    error_code: Annotated[int, INT16, At("0-7")] = 0


class OffsetFetchResponseTopic(Entity, frozen=True):
    name: Annotated[str, STRING, At("0-7")] = ""
    partitions: Annotated[tuple[OffsetFetchResponsePartition, ...], At("0-7")] = ()


class OffsetFetchResponsePartitions(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("8+")] = 0
    committed_offset: Annotated[int, INT64, At("8+")] = 0
    committed_leader_epoch: Annotated[int, INT32, At("8+", ignorable=True)] = -1
    metadata: Annotated[str | None, STRING, At("8+", nullable="8+")] = ""
    error_code: Annotated[int, INT16, At("8+")] = 0


class OffsetFetchResponseTopics(Entity, frozen=True):
    name: Annotated[str, STRING, At("8-9", ignorable=True)] = ""
    topic_id: Annotated[str, UUID, At("10+", ignorable=True)] = ""
    partitions: Annotated[tuple[OffsetFetchResponsePartitions, ...], At("8+")] = ()


class OffsetFetchResponseGroup(Entity, frozen=True):
    group_id: Annotated[str, STRING, At("8+")] = ""
    topics: Annotated[tuple[OffsetFetchResponseTopics, ...], At("8+")] = ()
    error_code: Annotated[int, INT16, At("8+")] = 0


class OffsetFetchResponse(Message, frozen=True):
    api_key = 9
    versions = parse_versions("0-10")
    flexible = parse_versions("6+")

    throttle_time_ms: Annotated[int, INT32, At("3+", ignorable=True)] = 0
    topics: Annotated[tuple[OffsetFetchResponseTopic, ...], At("0-7")] = ()
    error_code: Annotated[int, INT16, At("2-7", ignorable=True)] = 0
    groups: Annotated[tuple[OffsetFetchResponseGroup, ...], At("8+")] = ()
