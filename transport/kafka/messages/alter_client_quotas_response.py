"""AlterClientQuotasResponse in versions 0-1."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, At, Entity, Message, parse_versions


class EntityData(Entity, frozen=True):
    entity_type: Annotated[str, STRING, At("0+")] = ""
    entity_name: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""


class EntryData(Entity, frozen=True):
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    entity: Annotated[tuple[EntityData, ...], At("0+")] = ()


class AlterClientQuotasResponse(Message, frozen=True):
    api_key = 49
    versions = parse_versions("0-1")
    flexible = parse_versions("1+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    entries: Annotated[tuple[EntryData, ...], At("0+")] = ()
