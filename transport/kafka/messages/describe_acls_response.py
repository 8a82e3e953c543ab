"""DescribeAclsResponse in versions 0-3."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT8, INT16, INT32, STRING, At, Entity, Message, parse_versions


class AclDescription(Entity, frozen=True):
    principal: Annotated[str, STRING, At("0+")] = ""
    host: Annotated[str, STRING, At("0+")] = ""
    operation: Annotated[int, INT8, At("0+")] = 0
    permission_type: Annotated[int, INT8, At("0+")] = 0


class DescribeAclsResource(Entity, frozen=True):
    resource_type: Annotated[int, INT8, At("0+")] = 0
    resource_name: Annotated[str, STRING, At("0+")] = ""
    pattern_type: Annotated[int, INT8, At("1+")] = 3
    acls: Annotated[tuple[AclDescription, ...], At("0+")] = ()


class DescribeAclsResponse(Message, frozen=True):
    api_key = 29
    versions = parse_versions("0-3")
    flexible = parse_versions("2+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    resources: Annotated[tuple[DescribeAclsResource, ...], At("0+")] = ()
