"""ListConfigResourcesResponse in versions 0-1."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT8, INT16, INT32, STRING, At, Entity, Message, parse_versions


class ConfigResource(Entity, frozen=True):
    resource_name: Annotated[str, STRING, At("0+")] = ""
    resource_type: Annotated[int, INT8, At("1+", ignorable=True)] = 16


class ListConfigResourcesResponse(Message, frozen=True):
    api_key = 74
    versions = parse_versions("0-1")
    flexible = parse_versions("0+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    config_resources: Annotated[tuple[ConfigResource, ...], At("0+")] = ()
