"""DescribeClientQuotasResponse in versions 0-1."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import FLOAT64, INT16, INT32, STRING, At, Entity, Message, parse_versions


class EntityData(Entity, frozen=True):
    entity_type: Annotated[str, STRING, At("0+")] = ""
    entity_name: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""


class ValueData(Entity, frozen=True):
    key: Annotated[str, STRING, At("0+")] = ""
    value: Annotated[float, FLOAT64, At("0+")] = 0.0


class EntryData(Entity, frozen=True):
    entity: Annotated[tuple[EntityData, ...], At("0+")] = ()
    values: Annotated[tuple[ValueData, ...], At("0+")] = ()


class DescribeClientQuotasResponse(Message, frozen=True):
    api_key = 48
    versions = parse_versions("0-1")
    flexible = parse_versions("1+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    entries: Annotated[tuple[EntryData, ...] | None, At("0+", nullable="0+")] = ()
