"""DeleteAclsRequest in versions 0-3."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT8, STRING, At, Entity, Message, parse_versions


class DeleteAclsFilter(Entity, frozen=True):
    resource_type_filter: Annotated[int, INT8, At("0+")] = 0
    resource_name_filter: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    pattern_type_filter: Annotated[int, INT8, At("1+")] = 3
    principal_filter: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    host_filter: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    operation: Annotated[int, INT8, At("0+")] = 0
    permission_type: Annotated[int, INT8, At("0+")] = 0


class DeleteAclsRequest(Message, frozen=True):
    api_key = 31
    versions = parse_versions("0-3")
    flexible = parse_versions("2+")

    filters: Annotated[tuple[DeleteAclsFilter, ...], At("0+")] = ()
