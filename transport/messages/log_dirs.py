"""Messages between any client and a broker: the contents of its log directories (KIP-113)."""

from __future__ import annotations

from attrs import frozen

from transport.errors import ErrorCode
from transport.messages.common import Request
from transport.metadata import OfPartition


@frozen
class LogDirReplica(OfPartition):
    """A replica's log: its size in bytes, its end offset, and its lag behind the high watermark in records."""

    topic: str
    topic_id: str
    partition: int
    size: int
    log_end_offset: int
    offset_lag: int


@frozen
class LogDir:
    """A log directory. A failed one has an error and no replicas."""

    path: str
    error: ErrorCode
    replicas: tuple[LogDirReplica, ...]


@frozen
class DescribeLogDirsResponse:
    """The log directories of a broker, in configured order."""

    log_dirs: tuple[LogDir, ...]


@frozen
class DescribeLogDirsRequest(Request[DescribeLogDirsResponse]):
    """Ask a broker for all its logs, or for those of the partitions given as (topic, partition)."""

    partitions: tuple[tuple[str, int], ...] | None = None
