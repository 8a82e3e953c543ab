"""Messages between clients and brokers, and between brokers: records."""

from __future__ import annotations

from typing import Final

from transport.errors import ErrorCode
from transport.messages.common import Message, Request
from transport.metadata import OfPartition

MAX_WAIT_MS: Final = 500
"""The time in milliseconds that a consumer's fetch waits for records."""


class Record(Message, frozen=True):
    """A record in a log: the leader epoch under which it was appended, and its bytes."""

    leader_epoch: int
    value: bytes


class ProduceResponse(Message, frozen=True):
    """The offset of the first record."""

    base_offset: int


class ProduceRequest(OfPartition, Request[ProduceResponse], frozen=True):
    """Append records. `acks` is -1 (the whole ISR) or 1 (only the leader)."""

    topic: str
    partition: int
    acks: int
    timeout_ms: int
    values: tuple[bytes, ...]


class FetchPartition(OfPartition, Message, frozen=True):
    """Read one partition from `fetch_offset` on: at most `max_bytes`, but at least one record.

    `current_leader_epoch` -1 skips the epoch check. A follower also sends the epoch of its last record, from which the
    leader sees where their logs diverge (KIP-595). `topic_id`, since version 1, protects the reader of a deleted topic
    from a new topic of that name, whose leader epochs start at 0 again (KIP-516); "" skips this check. A follower that
    sends the `high_watermark` it knows (KIP-1166) gets no result while it is up to date.
    """

    topic: str
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    topic_id: str = ""
    high_watermark: int = -1


class FetchResult(OfPartition, Message, frozen=True):
    """Records of one partition.

    If `diverging_epoch` is not -1, there are no records: the reader must truncate its log to the end of that epoch, and
    to at most `diverging_end_offset`.
    """

    topic: str
    partition: int
    error: ErrorCode
    high_watermark: int = -1
    records: tuple[Record, ...] = ()
    diverging_epoch: int = -1
    diverging_end_offset: int = -1


class FetchResponse(Message, frozen=True):
    """A result for each partition, in order, except for those that are up to date (see `FetchPartition`)."""

    partitions: tuple[FetchResult, ...]


class FetchRequest(Request[FetchResponse], frozen=True):
    """Read partitions. `replica_id` is -1 for a consumer, which reads only up to the high watermark.

    If there are no records, the response waits up to `max_wait_ms` for some.
    """

    replica_id: int
    max_wait_ms: int
    partitions: tuple[FetchPartition, ...]
