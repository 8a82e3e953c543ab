"""CreatePartitionsRequest in versions 0-3."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT32, STRING, At, Entity, Message, parse_versions


class CreatePartitionsAssignment(Entity, frozen=True):
    broker_ids: Annotated[tuple[int, ...], INT32, At("0+")] = ()


class CreatePartitionsTopic(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    count: Annotated[int, INT32, At("0+")] = 0
    assignments: Annotated[tuple[CreatePartitionsAssignment, ...] | None, At("0+", nullable="0+")] = ()


class CreatePartitionsRequest(Message, frozen=True):
    api_key = 37
    versions = parse_versions("0-3")
    flexible = parse_versions("2+")

    topics: Annotated[tuple[CreatePartitionsTopic, ...], At("0+")] = ()
    timeout_ms: Annotated[int, INT32, At("0+")] = 0
    validate_only: Annotated[bool, BOOL, At("0+")] = False
