"""The log directories of a broker. One that fails takes its replicas offline; the others stay in use."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from shutil import disk_usage
from typing import Final, Protocol

import trio

from broker.meta_properties import FILE_NAME
from broker.reference.log import Log
from broker.reference.log_dir import LogDir
from transport.kafka.volume import Volume
from transport.log import get_logger
from transport.metadata import TopicPartition

CHECK_SECONDS: Final = 1.0
"""The interval between checks of the directories. Kafka notices a failure at its checkpoints, every 5 s."""

_log = get_logger(__name__)


class AllLogDirsFailed(Exception):
    """A broker has no log directory left that it can use."""


class LogDirs:
    """The logs of one broker in one or several directories. Implements `broker.reference.logs.Logs`.

    A new partition goes into the directory with the fewest partitions. A failed directory stays offline until the
    broker restarts.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Take over the directories that can be used. Raises OSError if none can."""
        self._paths = tuple(paths)
        self._usable: dict[Path, LogDir] = {}
        self._where: dict[TopicPartition, list[Path]] = {}
        self._held: Counter[Path] = Counter()
        self._has_failed = False
        faults: list[OSError] = []
        for path in paths:
            try:
                log_dir = LogDir(path)
                for tp in log_dir.partitions():
                    self._where.setdefault(tp, []).append(path)
                    self._held[path] += 1
            except OSError as error:
                self._has_failed = True
                faults.append(error)
            else:
                self._usable[path] = log_dir
        if not self._usable:
            raise faults[0]

    def open(self, tp: TopicPartition, topic_id: str, *, is_new: bool) -> Log:
        """Open the log of a partition, or create an empty one; see `Logs.open`.

        While a directory is offline, a log that is not found may be there, so that only new replicas get an empty log.
        """
        path = self._find(tp)
        if path is None:
            if self._has_failed and not is_new:
                raise OSError(errno.EIO, "its log is not here, and may be in a log directory that is offline", str(tp))
            return self._create(tp, topic_id)
        return self._usable[path].open(tp, topic_id)

    def _create(self, tp: TopicPartition, topic_id: str) -> Log:
        path = min(self._usable, key=self._held.__getitem__)
        log = self._usable[path].open(tp, topic_id)
        self._where[tp] = [path]
        self._held[path] += 1
        return log

    def topic_id(self, tp: TopicPartition) -> str | None:
        """Return the id of the topic whose log is here; None if there is none."""
        path = self._find(tp)
        return None if path is None else self._usable[path].topic_id(tp)

    def delete(self, tp: TopicPartition, topic_id: str) -> bool:
        """Delete the log of a partition; see `Logs.delete`."""
        path = self._find(tp)
        if path is None:
            return False
        was_there = self._usable[path].delete(tp, topic_id)
        if self._usable[path].topic_id(tp) is None:
            del self._where[tp]
            self._held[path] -= 1
        return was_there

    def directories(self) -> dict[str, bool]:
        """Return the directories in configured order, and whether each can be used."""
        return {str(path): path in self._usable for path in self._paths}

    def volume(self, path: str) -> Volume:
        """Return the size of the file system of a log directory; nothing is known of one that is gone."""
        try:
            found = disk_usage(path)
        except OSError:
            return Volume()
        return Volume(found.total, found.free)

    def partitions(self) -> Collection[TopicPartition]:
        """Return the partitions that have a log, even if it is offline."""
        return self._where.keys()

    def directory_of(self, tp: TopicPartition) -> str | None:
        """Return the directory with the log of a partition; None if there is none, or it cannot be used."""
        try:
            path = self._find(tp)
        except OSError:
            return None
        return None if path is None else str(path)

    def size(self, tp: TopicPartition) -> int:
        """Return the size of a partition's log in bytes. Raises OSError if there is no usable log."""
        path = self._find(tp)
        if path is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(tp))
        return self._usable[path].size(tp)

    def check(self) -> tuple[TopicPartition, ...]:
        """Check the directories. Return the partitions in those that have failed since the last check.

        Raises AllLogDirsFailed if none remains.
        """
        lost: list[TopicPartition] = []
        for path in list(self._usable):
            try:
                os.utime(path / FILE_NAME)
            except OSError as error:
                text = "a log directory failed: its replicas are offline until the broker restarts"
                _log.error(text, path=str(path), reason=str(error))
                del self._usable[path]
                self._has_failed = True
                lost += [tp for tp, where in self._where.items() if path in where]
        if not self._usable:
            raise AllLogDirsFailed(
                "all log directories have failed: repair or replace the disks, then start the broker"
            )
        return tuple(lost)

    def _find(self, tp: TopicPartition) -> Path | None:
        """Return the directory with the log of a partition. Raises OSError if it is offline or ambiguous."""
        where = self._where.get(tp, [])
        if len(where) > 1:
            places = ", ".join(map(str, where))
            raise OSError(errno.EEXIST, f"more than one directory has its log ({places}): remove the older", str(tp))
        if not where:
            return None
        if where[0] not in self._usable:
            raise OSError(errno.EIO, f"its log directory {where[0]} is offline", str(tp))
        return where[0]


class CheckableDirs(Protocol):
    """Log directories that can be checked: `LogDirs`, for instance."""

    def check(self) -> Sequence[TopicPartition]:
        """Return the partitions in directories that have failed since. Raises AllLogDirsFailed."""


async def look_after(log_dirs: CheckableDirs, lose: Callable[[Sequence[TopicPartition]], Awaitable[None]]) -> None:
    """Check directories until cancelled, and pass the partitions in failed ones to `lose`.

    Raises AllLogDirsFailed.
    """
    while True:
        await trio.sleep(CHECK_SECONDS)
        lost = log_dirs.check()
        if lost:
            await lose(lost)
