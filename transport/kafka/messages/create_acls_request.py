"""CreateAclsRequest in versions 0-3."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT8, STRING, At, Entity, Message, parse_versions


class AclCreation(Entity, frozen=True):
    resource_type: Annotated[int, INT8, At("0+")] = 0
    resource_name: Annotated[str, STRING, At("0+")] = ""
    resource_pattern_type: Annotated[int, INT8, At("1+")] = 3
    principal: Annotated[str, STRING, At("0+")] = ""
    host: Annotated[str, STRING, At("0+")] = ""
    operation: Annotated[int, INT8, At("0+")] = 0
    permission_type: Annotated[int, INT8, At("0+")] = 0


class CreateAclsRequest(Message, frozen=True):
    api_key = 30
    versions = parse_versions("0-3")
    flexible = parse_versions("2+")

    creations: Annotated[tuple[AclCreation, ...], At("0+")] = ()
