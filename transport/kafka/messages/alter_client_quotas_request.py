"""AlterClientQuotasRequest in versions 0-1."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, FLOAT64, STRING, At, Entity, Message, parse_versions


class EntityData(Entity, frozen=True):
    entity_type: Annotated[str, STRING, At("0+")] = ""
    entity_name: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""


class OpData(Entity, frozen=True):
    key: Annotated[str, STRING, At("0+")] = ""
    value: Annotated[float, FLOAT64, At("0+")] = 0.0
    remove: Annotated[bool, BOOL, At("0+")] = False


class EntryData(Entity, frozen=True):
    entity: Annotated[tuple[EntityData, ...], At("0+")] = ()
    ops: Annotated[tuple[OpData, ...], At("0+")] = ()


class AlterClientQuotasRequest(Message, frozen=True):
    api_key = 49
    versions = parse_versions("0-1")
    flexible = parse_versions("1+")

    entries: Annotated[tuple[EntryData, ...], At("0+")] = ()
    validate_only: Annotated[bool, BOOL, At("0+")] = False
