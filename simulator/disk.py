"""The storage of one simulated broker: logs in memory, which outlive the broker's process."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Sequence
from math import inf
from typing import Final, Protocol

import trio

from broker.fencing import check_topic_id
from broker.reference.epochs import LeaderEpochs
from broker.reference.log_dir import MAX_NAME, deleted_name
from broker.reference.log_dirs import AllLogDirsFailed
from broker.reference.logs import RECORD_OVERHEAD_BYTES, check_topic_name
from transport.kafka.volume import Volume
from transport.messages import Record
from transport.metadata import TopicPartition

DIRECTORIES: Final = 2

_TOTAL: Final = 10**12
"""The size of a disk, in bytes."""


class DiskObserver(Protocol):
    """Is notified of changes that brokers make to their logs, right after each one; not of changes from outside.

    It must neither block nor keep the sequences of records without a copy.
    """

    def appended(
        self, broker_id: int, tp: TopicPartition, topic_id: str, base_offset: int, records: Sequence[Record]
    ) -> None:
        """Observe records that a leader or a follower appended; the first has `base_offset`."""

    def truncated(self, broker_id: int, tp: TopicPartition, topic_id: str, end_offset: int) -> None:
        """Observe a truncation: the log now ends at `end_offset`, which is less than before."""

    def deleted(self, broker_id: int, tp: TopicPartition, topic_id: str) -> None:
        """Observe that the broker deleted a log."""


class MemoryLog:
    """The log of one replica; implements `broker.reference.logs.ReplicaLog`.

    It is closed when its broker closes it, when it is opened again, and when the broker or the disk dies. `records`
    stays visible, but a closed log can no longer be used, so that no task of a dead process affects the world.
    """

    def __init__(self, disk: Disk, tp: TopicPartition, topic_id: str, earlier: MemoryLog | None = None) -> None:
        """Open an empty log, or one with the records of `earlier`."""
        self.tp = tp
        self.topic_id = topic_id
        self.records: list[Record] = [] if earlier is None else earlier.records
        self._epochs: LeaderEpochs = LeaderEpochs() if earlier is None else earlier._epochs  # noqa: SLF001  one of us
        self._disk = disk
        self._is_open = True

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return len(self.records)

    @property
    def size(self) -> int:
        """The size of the records, in bytes."""
        return sum(RECORD_OVERHEAD_BYTES + len(record.value) for record in self.records)

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the last record, -1 if there is none."""
        return self._epochs.latest

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to `epoch` in the log and where it ends; see `LeaderEpochs.end_offset_for`."""
        return self._epochs.end_offset_for(epoch, len(self.records))

    def append(self, records: Sequence[Record]) -> int:
        """Append records and return the offset of the first. Raises ValueError for impossible leader epochs."""
        self._check()
        self._epochs.check_order(records)
        base_offset = len(self.records)
        for offset, record in enumerate(records, base_offset):
            self._epochs.assign(record.leader_epoch, offset)
        self.records.extend(records)
        if records:
            self._disk.observer.appended(self._disk.broker_id, self.tp, self.topic_id, base_offset, records)
        return base_offset

    def read(self, offset: int, max_bytes: int, end_offset: int) -> tuple[Record, ...]:
        """Return the records from `offset` up to `end_offset`, within `max_bytes` but at least one."""
        self._check()
        size = 0
        for end in range(offset, end_offset):
            size += RECORD_OVERHEAD_BYTES + len(self.records[end].value)
            if size > max_bytes and end > offset:
                return tuple(self.records[offset:end])
        return tuple(self.records[offset:end_offset])

    def truncate(self, end_offset: int) -> None:
        """Remove the records from `end_offset` on."""
        self._check()
        if end_offset >= len(self.records):
            return
        del self.records[end_offset:]
        self._epochs.truncate(end_offset)
        self._disk.observer.truncated(self._disk.broker_id, self.tp, self.topic_id, end_offset)

    def close(self) -> None:
        """Close the log."""
        self._is_open = False

    def _check(self) -> None:
        if not self._is_open:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), str(self.tp))
        self._disk.require(self.tp)


class Disk:
    """One broker's storage; implements `broker.reference.logs.Logs`.

    `logs` is its contents, for observers, not for the broker. The logs are in DIRECTORIES log directories, each of
    which can fail alone.
    """

    def __init__(self, observer: DiskObserver, broker_id: int) -> None:
        self.observer = observer
        self.broker_id = broker_id
        self.storage_id = f"disk-of-{broker_id}"
        self.logs: dict[TopicPartition, MemoryLog] = {}
        self.lost_at = -inf
        """The time at which the previous disk was lost."""

        self.mended_at = -inf
        """The time at which what the broker could not use, or said so, last became usable again."""

        self.free: int | None = None
        """The bytes that the broker tells to be free; None if it does not tell them."""

        self._failed: dict[int, None] = {}
        self._noticed: set[int] = set()
        self._failed_in_this_life: dict[int, None] = {}
        """The directories that have not worked all the time since the broker's process started, mended or not."""

        self._disowned: set[TopicPartition] = set()
        """The partitions whose logs the broker's process has called unusable, although they work."""

    @property
    def has_failed(self) -> bool:
        """Whether a log directory has failed."""
        return bool(self._failed)

    @property
    def is_in_use(self) -> bool:
        """Whether all directories work, and have worked since the broker's process started."""
        return not self._failed and not self._failed_in_this_life

    # --- for the broker -----------------------------------------------------------------------------------------

    def open(self, tp: TopicPartition, topic_id: str, *, is_new: bool = True) -> MemoryLog:  # noqa: ARG002  one disk
        """Open the log of a partition, or create an empty one; see `Logs.open`."""
        check_topic_name(tp.topic)
        self.require(tp)
        _check_name(str(tp))
        earlier = self.logs.get(tp)
        if earlier is not None:
            check_topic_id(earlier.topic_id, topic_id)
            earlier.close()
        log = self.logs[tp] = MemoryLog(self, tp, topic_id, earlier)
        return log

    def topic_id(self, tp: TopicPartition) -> str | None:
        """Return the topic id of a partition's log; None if there is no log."""
        check_topic_name(tp.topic)
        self.require(tp)
        held = self.logs.get(tp)
        return None if held is None else held.topic_id

    def id_of(self, tp: TopicPartition) -> str:
        """Return the topic id of a partition's log, whether it can be used or not; "" if there is none."""
        held = self.logs.get(tp)
        return "" if held is None else held.topic_id

    def can_open(self, tp: TopicPartition, *, is_new: bool) -> bool:
        """Return whether a broker that guards its logs may open this one, or create it.

        A log that is not there may be in a directory that has failed, unless the replica is new (KIP-112).
        """
        if tp.partition % DIRECTORIES in self._failed:
            return False
        return is_new or tp in self.logs or not self._failed

    def delete(self, tp: TopicPartition, topic_id: str) -> bool:
        """Delete the log of a partition; see `Logs.delete`."""
        if self.topic_id(tp) != topic_id:
            return False
        _check_name(deleted_name(tp))
        self.logs.pop(tp).close()
        self.observer.deleted(self.broker_id, tp, topic_id)
        return True

    def directories(self) -> dict[str, bool]:
        """Return the log directories, and whether each can be used."""
        return {_path(directory): directory not in self._failed for directory in range(DIRECTORIES)}

    def volume(self, path: str) -> Volume:  # noqa: ARG002  as `Logs` has it
        """Return the one disk of all directories, as far as it is told; it never fills up."""
        return Volume() if self.free is None else Volume(_TOTAL, self.free)

    def partitions(self) -> Collection[TopicPartition]:
        """Return the partitions that have a log."""
        return self.logs.keys()

    def directory_of(self, tp: TopicPartition) -> str | None:
        """Return the directory with the log of a partition; None if there is no log or the directory cannot be used."""
        directory = tp.partition % DIRECTORIES
        return _path(directory) if tp in self.logs and directory not in self._failed else None

    def size(self, tp: TopicPartition) -> int:
        """Return how many bytes the log of a partition takes."""
        self.require(tp)
        return self.logs[tp].size

    def require(self, tp: TopicPartition) -> None:
        """Raise OSError if the log directory of a partition has failed."""
        if tp.partition % DIRECTORIES in self._failed:
            raise OSError(errno.EIO, os.strerror(errno.EIO), self.storage_id)

    def check(self) -> tuple[TopicPartition, ...]:
        """Return the partitions in directories that have failed since the last check; see `LogDirs.check`."""
        lost = [tp for tp in self.logs if tp.partition % DIRECTORIES in self._failed.keys() - self._noticed]
        self._noticed = set(self._failed)
        if len(self._noticed) == DIRECTORIES:
            raise AllLogDirsFailed("all log directories have failed")
        return tuple(lost)

    # --- from outside -------------------------------------------------------------------------------------------

    def make_room(self) -> None:
        """Let there be room for everything, if the broker tells how much there is."""
        self.free = None if self.free is None else _TOTAL

    def is_healthy(self, tp: TopicPartition) -> bool:
        """Return whether the directory of a partition has worked since the broker's process started.

        A broker does not use a directory again that has failed before it restarts. A log that is not there may be in
        any directory; see `can_open`.
        """
        failed = self._failed | self._failed_in_this_life
        is_found = tp in self.logs or not failed
        return is_found and tp.partition % DIRECTORIES not in failed and tp not in self._disowned

    def disown(self, tp: TopicPartition) -> None:
        """Record that the broker calls a partition's log unusable: until its next process, controllers believe it."""
        self._disowned.add(tp)

    def begin(self) -> None:
        """Note which directories do not work as the broker's process starts: it leaves them alone until its end."""
        self._failed_in_this_life = dict(self._failed)

    def cut(self) -> None:
        """Close the open logs of the broker's process, which died. Their contents stay for the next process."""
        self._failed_in_this_life.clear()
        if self._disowned:
            self.mended_at = trio.current_time()
        self._disowned.clear()
        for log in self.logs.values():
            log.close()

    def wipe(self, storage_id: str) -> None:
        """Replace the disk by an empty one: its logs are lost, and its failures end."""
        self.cut()
        self.logs.clear()
        self.storage_id = storage_id
        self.mend()

    def fail(self, directory: int | None = None) -> None:
        """Make every operation in a log directory, or in all if None, raise OSError from now on.

        The stored data stay unchanged.
        """
        failing = dict.fromkeys(range(DIRECTORIES) if directory is None else [directory])
        self._failed.update(failing)
        self._failed_in_this_life.update(failing)

    def mend(self) -> None:
        """Make the disk work again after `fail`."""
        if self._failed:
            self.mended_at = trio.current_time()
        self._failed.clear()
        self._noticed.clear()


def _check_name(name: str) -> None:
    """Raise OSError for a name that no directory can have."""
    if len(name.encode()) > MAX_NAME:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), name)


def _path(directory: int) -> str:
    return f"/disk/{directory}"
