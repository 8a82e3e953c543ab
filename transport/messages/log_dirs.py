"""Between anybody and a broker: what its log directories hold (KIP-113)."""

from __future__ import annotations

from attrs import frozen

from transport.errors import ErrorCode
from transport.messages.common import Request
from transport.metadata import OfPartition


@frozen
class LogDirReplica(OfPartition):
    """A replica's log: its size in bytes, where it ends, and how far that is behind the high watermark."""

    topic: str
    topic_id: str
    partition: int
    size: int
    log_end_offset: int
    offset_lag: int


@frozen
class LogDir:
    """A log directory; one that has failed has an error and no replicas."""

    path: str
    error: ErrorCode
    replicas: tuple[LogDirReplica, ...]


@frozen
class DescribeLogDirsResponse:
    """The log directories of a broker, in the order in which they are configured."""

    log_dirs: tuple[LogDir, ...]


@frozen
class DescribeLogDirsRequest(Request[DescribeLogDirsResponse]):
    """Ask a broker for its logs, all of them or those of the partitions named as (topic, partition)."""

    partitions: tuple[tuple[str, int], ...] | None = None
