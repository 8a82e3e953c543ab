"""DescribeLogDirsResponse in versions 0-5."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT16, INT32, INT64, STRING, At, Entity, Message, parse_versions


class DescribeLogDirsPartition(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("0+")] = 0
    partition_size: Annotated[int, INT64, At("0+")] = 0
    offset_lag: Annotated[int, INT64, At("0+")] = 0
    is_future_key: Annotated[bool, BOOL, At("0+")] = False


class DescribeLogDirsTopic(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    partitions: Annotated[tuple[DescribeLogDirsPartition, ...], At("0+")] = ()


class DescribeLogDirsResult(Entity, frozen=True):
    error_code: Annotated[int, INT16, At("0+")] = 0
    log_dir: Annotated[str, STRING, At("0+")] = ""
    topics: Annotated[tuple[DescribeLogDirsTopic, ...], At("0+")] = ()
    total_bytes: Annotated[int, INT64, At("4+", ignorable=True)] = -1
    usable_bytes: Annotated[int, INT64, At("4+", ignorable=True)] = -1
    is_cordoned: Annotated[bool, BOOL, At("5+", ignorable=True)] = False


class DescribeLogDirsResponse(Message, frozen=True):
    api_key = 35
    versions = parse_versions("0-5")
    flexible = parse_versions("2+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("3+", ignorable=True)] = 0
    results: Annotated[tuple[DescribeLogDirsResult, ...], At("0+")] = ()
