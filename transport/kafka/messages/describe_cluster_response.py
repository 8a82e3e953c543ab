"""DescribeClusterResponse in versions 0-2."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT8, INT16, INT32, STRING, At, Entity, Message, parse_versions


class DescribeClusterBroker(Entity, frozen=True):
    broker_id: Annotated[int, INT32, At("0+")] = 0
    host: Annotated[str, STRING, At("0+")] = ""
    port: Annotated[int, INT32, At("0+")] = 0
    rack: Annotated[str | None, STRING, At("0+", nullable="0+")] = None
    is_fenced: Annotated[bool, BOOL, At("2+")] = False


class DescribeClusterResponse(Message, frozen=True):
    api_key = 60
    versions = parse_versions("0-2")
    flexible = parse_versions("0+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = None
    endpoint_type: Annotated[int, INT8, At("1+")] = 1
    cluster_id: Annotated[str, STRING, At("0+")] = ""
    controller_id: Annotated[int, INT32, At("0+")] = -1
    brokers: Annotated[tuple[DescribeClusterBroker, ...], At("0+")] = ()
    cluster_authorized_operations: Annotated[int, INT32, At("0+")] = -2147483648
