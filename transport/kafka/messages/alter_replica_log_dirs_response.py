"""AlterReplicaLogDirsResponse in versions 0-2."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, At, Entity, Message, parse_versions


class AlterReplicaLogDirPartitionResult(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0


class AlterReplicaLogDirTopicResult(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0+")] = ""
    partitions: Annotated[tuple[AlterReplicaLogDirPartitionResult, ...], At("0+")] = ()


class AlterReplicaLogDirsResponse(Message, frozen=True):
    api_key = 34
    versions = parse_versions("0-2")
    flexible = parse_versions("2+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    results: Annotated[tuple[AlterReplicaLogDirTopicResult, ...], At("0+")] = ()
