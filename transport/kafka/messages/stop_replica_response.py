"""StopReplicaResponse in versions 0-4."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, At, Entity, Message, parse_versions


class StopReplicaPartitionError(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0+")] = ""
    partition_index: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0


class StopReplicaResponse(Message, frozen=True):
    api_key = 5
    versions = parse_versions("0-4")
    flexible = parse_versions("2+")

    error_code: Annotated[int, INT16, At("0+")] = 0
    partition_errors: Annotated[tuple[StopReplicaPartitionError, ...], At("0+")] = ()
