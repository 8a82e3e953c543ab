"""DescribeConfigsRequest in versions 0-4."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT8, STRING, At, Entity, Message, parse_versions


class DescribeConfigsResource(Entity, frozen=True):
    resource_type: Annotated[int, INT8, At("0+")] = 0
    resource_name: Annotated[str, STRING, At("0+")] = ""
    configuration_keys: Annotated[tuple[str, ...] | None, STRING, At("0+", nullable="0+")] = ()


class DescribeConfigsRequest(Message, frozen=True):
    api_key = 32
    versions = parse_versions("0-4")
    flexible = parse_versions("4+")

    resources: Annotated[tuple[DescribeConfigsResource, ...], At("0+")] = ()
    include_synonyms: Annotated[bool, BOOL, At("1+")] = False
    include_documentation: Annotated[bool, BOOL, At("3+")] = False
