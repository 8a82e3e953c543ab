"""IncrementalAlterConfigsRequest in versions 0-1."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT8, STRING, At, Entity, Message, parse_versions


class AlterableConfig(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    config_operation: Annotated[int, INT8, At("0+")] = 0
    value: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""


class AlterConfigsResource(Entity, frozen=True):
    resource_type: Annotated[int, INT8, At("0+")] = 0
    resource_name: Annotated[str, STRING, At("0+")] = ""
    configs: Annotated[tuple[AlterableConfig, ...], At("0+")] = ()


class IncrementalAlterConfigsRequest(Message, frozen=True):
    api_key = 44
    versions = parse_versions("0-1")
    flexible = parse_versions("1+")

    resources: Annotated[tuple[AlterConfigsResource, ...], At("0+")] = ()
    validate_only: Annotated[bool, BOOL, At("0+")] = False
