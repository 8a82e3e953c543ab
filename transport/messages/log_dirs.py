"""Messages between any client and a broker: the contents of its log directories (KIP-113)."""

from __future__ import annotations

from transport.errors import ErrorCode
from transport.messages.common import Message, Request
from transport.messages.reassignments import UNKNOWN
from transport.metadata import OfPartition, TopicPartition


class LogDirReplica(OfPartition, Message, frozen=True):
    """A replica's log: its size in bytes, its end offset, and its lag behind the high watermark in records."""

    topic: str
    topic_id: str
    partition: int
    size: int
    log_end_offset: int
    offset_lag: int


class LogDir(Message, frozen=True):
    """A log directory. A failed one has an error and no replicas.

    `total` and `usable` are the bytes that its file system has, and those that are free for the broker; UNKNOWN if it
    does not tell (KIP-827).
    """

    path: str
    error: ErrorCode
    replicas: tuple[LogDirReplica, ...]
    total: int = UNKNOWN
    usable: int = UNKNOWN


class DescribeLogDirsResponse(Message, frozen=True):
    """The log directories of a broker, in configured order."""

    log_dirs: tuple[LogDir, ...]


class DescribeLogDirsRequest(Request[DescribeLogDirsResponse], frozen=True):
    """Ask a broker for all its logs, or for those of the partitions given."""

    partitions: tuple[TopicPartition, ...] | None = None
