"""Between clients and brokers, and between brokers: records."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from transport.errors import ErrorCode
from transport.messages.common import Request
from transport.metadata import OfPartition

MAX_WAIT_MS: Final = 500
"""How long a consumer lets a fetch wait for records."""


@frozen
class Record:
    """A record as a log holds it: its leader's epoch when it was appended, and its bytes."""

    leader_epoch: int
    value: bytes


@frozen
class ProduceResponse:
    """The offset of the first record."""

    base_offset: int


@frozen
class ProduceRequest(OfPartition, Request[ProduceResponse]):
    """Append records. `acks` is -1 (all of the ISR) or 1 (the leader alone)."""

    topic: str
    partition: int
    acks: int
    timeout_ms: int
    values: tuple[bytes, ...]


@frozen
class FetchPartition(OfPartition):
    """Read one partition from `fetch_offset` on, up to `max_bytes` but at least one record.

    `current_leader_epoch` -1 skips the epoch check. A follower also gives the epoch of its last record, so that
    the leader can tell where their logs part (KIP-595). `topic_id`, since version 1, keeps the reader of a deleted
    topic from a new one of its name, whose leader epochs begin at 0 again (KIP-516); empty skips that check. A
    follower that gives the `high_watermark` that it knows (KIP-1166) gets no result when it has all there is.
    """

    topic: str
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    topic_id: str = ""
    high_watermark: int = -1


@frozen
class FetchResult(OfPartition):
    """Records of one partition.

    With `diverging_epoch` other than -1 there are none: the reader must truncate its log to where that epoch ends in
    it, and to `diverging_end_offset` at most.
    """

    topic: str
    partition: int
    error: ErrorCode
    high_watermark: int = -1
    records: tuple[Record, ...] = ()
    diverging_epoch: int = -1
    diverging_end_offset: int = -1


@frozen
class FetchResponse:
    """A result for each partition, in order; without those of which a follower knows all, see `FetchPartition`."""

    partitions: tuple[FetchResult, ...]


@frozen
class FetchRequest(Request[FetchResponse]):
    """Read partitions; `replica_id` is -1 for a consumer, who sees no further than the high watermark.

    An answer without records waits `max_wait_ms` for some.
    """

    replica_id: int
    max_wait_ms: int
    partitions: tuple[FetchPartition, ...]
