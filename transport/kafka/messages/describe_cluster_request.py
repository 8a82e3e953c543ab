"""DescribeClusterRequest in versions 0-2."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT8, At, Message, parse_versions


class DescribeClusterRequest(Message, frozen=True):
    api_key = 60
    versions = parse_versions("0-2")
    flexible = parse_versions("0+")

    include_cluster_authorized_operations: Annotated[bool, BOOL, At("0+")] = False
    endpoint_type: Annotated[int, INT8, At("1+")] = 1
    include_fenced_brokers: Annotated[bool, BOOL, At("2+")] = False
