"""ControlledShutdownResponse in versions 0-3."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, At, Entity, Message, parse_versions


class RemainingPartition(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0+")] = ""
    partition_index: Annotated[int, INT32, At("0+")] = 0


class ControlledShutdownResponse(Message, frozen=True):
    api_key = 7
    versions = parse_versions("0-3")
    flexible = parse_versions("3+")

    error_code: Annotated[int, INT16, At("0+")] = 0
    remaining_partitions: Annotated[tuple[RemainingPartition, ...], At("0+")] = ()
