"""The storage interface of the reference service: a log for each replica that survives the broker's process."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from transport.errors import ApiError, ErrorCode
from transport.kafka.volume import Volume
from transport.messages import Record
from transport.metadata import TopicPartition

RECORD_OVERHEAD_BYTES: Final = 12
"""The size of a record besides its value, for limits on the bytes of a read."""

_LEGAL_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


class ReplicaLog(Protocol):
    """The open log of one replica. Offsets count records from 0.

    Methods that read or change records may raise OSError. A failed append leaves the log unchanged.
    """

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""

    @property
    def size(self) -> int:
        """The size of the records in bytes."""

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the last record; -1 if there is none."""

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to `epoch` in the log and its end offset; see `LeaderEpochs.end_offset_for`."""

    def append(self, records: Sequence[Record]) -> int:
        """Append records and return the offset of the first. Raises ValueError for impossible leader epochs."""

    def read(self, offset: int, max_bytes: int, end_offset: int) -> tuple[Record, ...]:
        """Return the records from `offset` up to `end_offset`, within `max_bytes` but at least one."""

    def truncate(self, end_offset: int) -> None:
        """Remove the records from `end_offset` on."""

    def close(self) -> None:
        """Close the log. It can be opened again."""


class Logs(Protocol):
    """The logs of one broker. Every method may raise OSError, and ApiError for an illegal topic name."""

    def open(self, tp: TopicPartition, topic_id: str, *, is_new: bool) -> ReplicaLog:
        """Open the log of a partition, or create an empty one. It must not be open yet.

        Unless `is_new`, the replica may have a log already; raises OSError if this cannot be found out.

        Raises ApiError with UNKNOWN_TOPIC_ID if there is the log of an earlier topic of that name.
        """

    def topic_id(self, tp: TopicPartition) -> str | None:
        """Return the id of the topic whose log is here; None if there is none."""

    def delete(self, tp: TopicPartition, topic_id: str) -> bool:
        """Delete the log of a partition if it belongs to that topic id. Return whether it did. It must not be open.

        The log of another topic of the same name stays, which is not an error.
        """

    def directories(self) -> Mapping[str, bool]:
        """Return the log directories in configured order, and whether each can be used."""

    def volume(self, path: str) -> Volume:
        """Return the size of the file system of a log directory, as far as it is known."""

    def partitions(self) -> Collection[TopicPartition]:
        """Return the partitions that have a log."""

    def directory_of(self, tp: TopicPartition) -> str | None:
        """Return the directory with the log of a partition; None if there is none, or it cannot be used."""

    def size(self, tp: TopicPartition) -> int:
        """Return the size of a partition's log in bytes, whether it is open or not."""


def check_topic_name(topic: str) -> None:
    """Raise ApiError with INVALID_TOPIC_EXCEPTION for a name that Kafka does not allow, such as one with a slash."""
    if not _LEGAL_TOPIC.fullmatch(topic):
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic!r} is not a valid topic name")


def size_of(records: Iterable[Record]) -> int:
    """Return the size of records for limits on the bytes of a read."""
    return sum(RECORD_OVERHEAD_BYTES + len(record.value) for record in records)
