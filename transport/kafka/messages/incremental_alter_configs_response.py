"""IncrementalAlterConfigsResponse in versions 0-1."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT8, INT16, INT32, STRING, At, Entity, Message, parse_versions


class AlterConfigsResourceResponse(Entity, frozen=True):
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    resource_type: Annotated[int, INT8, At("0+")] = 0
    resource_name: Annotated[str, STRING, At("0+")] = ""


class IncrementalAlterConfigsResponse(Message, frozen=True):
    api_key = 44
    versions = parse_versions("0-1")
    flexible = parse_versions("1+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    responses: Annotated[tuple[AlterConfigsResourceResponse, ...], At("0+")] = ()
