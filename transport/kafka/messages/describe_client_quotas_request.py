"""DescribeClientQuotasRequest in versions 0-1."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT8, STRING, At, Entity, Message, parse_versions


class ComponentData(Entity, frozen=True):
    entity_type: Annotated[str, STRING, At("0+")] = ""
    match_type: Annotated[int, INT8, At("0+")] = 0
    match: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""


class DescribeClientQuotasRequest(Message, frozen=True):
    api_key = 48
    versions = parse_versions("0-1")
    flexible = parse_versions("1+")

    components: Annotated[tuple[ComponentData, ...], At("0+")] = ()
    strict: Annotated[bool, BOOL, At("0+")] = False
