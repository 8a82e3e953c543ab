"""DescribeConfigsResponse in versions 0-4."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT8, INT16, INT32, STRING, At, Entity, Message, parse_versions


class DescribeConfigsSynonym(Entity, frozen=True):
    name: Annotated[str, STRING, At("1+")] = ""
    value: Annotated[str | None, STRING, At("1+", nullable="0+")] = ""
    source: Annotated[int, INT8, At("1+")] = 0


class DescribeConfigsResourceResult(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    value: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    read_only: Annotated[bool, BOOL, At("0+")] = False
    is_default: Annotated[bool, BOOL, At("0")] = False
    config_source: Annotated[int, INT8, At("1+", ignorable=True)] = -1
    is_sensitive: Annotated[bool, BOOL, At("0+")] = False
    synonyms: Annotated[tuple[DescribeConfigsSynonym, ...], At("1+", ignorable=True)] = ()
    config_type: Annotated[int, INT8, At("3+", ignorable=True)] = 0
    documentation: Annotated[str | None, STRING, At("3+", nullable="0+", ignorable=True)] = ""


class DescribeConfigsResult(Entity, frozen=True):
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    resource_type: Annotated[int, INT8, At("0+")] = 0
    resource_name: Annotated[str, STRING, At("0+")] = ""
    configs: Annotated[tuple[DescribeConfigsResourceResult, ...], At("0+")] = ()


class DescribeConfigsResponse(Message, frozen=True):
    api_key = 32
    versions = parse_versions("0-4")
    flexible = parse_versions("4+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    results: Annotated[tuple[DescribeConfigsResult, ...], At("0+")] = ()
