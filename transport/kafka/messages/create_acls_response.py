"""CreateAclsResponse in versions 0-3."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, At, Entity, Message, parse_versions


class AclCreationResult(Entity, frozen=True):
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""


class CreateAclsResponse(Message, frozen=True):
    api_key = 30
    versions = parse_versions("0-3")
    flexible = parse_versions("2+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    results: Annotated[tuple[AclCreationResult, ...], At("0+")] = ()
