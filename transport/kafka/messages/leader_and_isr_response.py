"""LeaderAndIsrResponse in versions 0-7."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, UUID, At, Entity, Message, parse_versions


class LeaderAndIsrPartitionError(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0-4", ignorable=True)] = ""
    partition_index: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0


class LeaderAndIsrTopicError(Entity, frozen=True):
    topic_id: Annotated[str, UUID, At("5+")] = ""
    partition_errors: Annotated[tuple[LeaderAndIsrPartitionError, ...], At("5+")] = ()


class LeaderAndIsrResponse(Message, frozen=True):
    api_key = 4
    versions = parse_versions("0-7")
    flexible = parse_versions("4+")

    error_code: Annotated[int, INT16, At("0+")] = 0
    partition_errors: Annotated[tuple[LeaderAndIsrPartitionError, ...], At("0-4")] = ()
    topics: Annotated[tuple[LeaderAndIsrTopicError, ...], At("5+")] = ()
