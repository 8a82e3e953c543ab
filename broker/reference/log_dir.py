"""One log directory of a broker, with a directory per partition for its log and the id of its topic."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from broker.fencing import check_topic_id
from broker.reference.log import Log, read_records
from broker.reference.logs import check_topic_name
from transport.messages import Record
from transport.metadata import TopicPartition

LOG_FILE: Final = "records.log"
TOPIC_ID_FILE: Final = "topic.id"
DELETED_SUFFIX: Final = ".deleted"
MAX_NAME: Final = 255
"""The limit of most file systems for the name of a file or directory, in bytes."""


class LogDir:
    """Opens and deletes the logs below one directory."""

    def __init__(self, path: Path) -> None:
        """Take over the directory, and complete the deletions of an earlier run."""
        self._path = path
        path.mkdir(parents=True, exist_ok=True)
        for remains in sorted(path.glob(f"*{DELETED_SUFFIX}")):
            shutil.rmtree(remains)

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that have a log here."""
        names = sorted(path.parent.name for path in self._path.glob(f"*/{TOPIC_ID_FILE}"))
        parts = [name.rpartition("-") for name in names]
        return [TopicPartition(topic, int(number)) for topic, _, number in parts if topic and number.isdecimal()]

    def directory(self, tp: TopicPartition) -> Path:
        """Return the directory of a partition. Raises ApiError for a topic name that is not a valid file name."""
        check_topic_name(tp.topic)
        return self._path / str(tp)

    def open(self, tp: TopicPartition, topic_id: str) -> Log:
        """Open the log of a partition, or create an empty one; see `Logs.open`."""
        directory = self.directory(tp)
        directory.mkdir(exist_ok=True)
        held = self.topic_id(tp)
        if held is None:
            draft = directory / f"{TOPIC_ID_FILE}.tmp"
            draft.write_text(topic_id, encoding="utf-8")
            draft.replace(directory / TOPIC_ID_FILE)  # atomically, because half an id would be that of another topic
        else:
            check_topic_id(held, topic_id)
        return Log(directory / LOG_FILE)

    def topic_id(self, tp: TopicPartition) -> str | None:
        """Return the id of the topic whose log is here; None if there is none."""
        try:
            return (self.directory(tp) / TOPIC_ID_FILE).read_text(encoding="utf-8") or None
        except FileNotFoundError:
            return None

    def size(self, tp: TopicPartition) -> int:
        """Return the size of a partition's log in bytes. Raises OSError if there is none."""
        return (self.directory(tp) / LOG_FILE).stat().st_size

    def delete(self, tp: TopicPartition, topic_id: str) -> bool:
        """Delete the log of a partition; see `Logs.delete`."""
        if self.topic_id(tp) != topic_id:
            return False
        doomed = self._path / deleted_name(tp)
        # An earlier deletion failed halfway.
        if doomed.exists():
            shutil.rmtree(doomed)
        self.directory(tp).rename(doomed)  # atomically, so that a half-deleted log is never mistaken for a whole one
        shutil.rmtree(doomed)
        return True


def deleted_name(tp: TopicPartition) -> str:
    """Return the name of a partition's directory while it is being deleted, cut to MAX_NAME bytes, as in Kafka.

    Two directories cut to the same name may replace each other, because both are being deleted.
    """
    return f"{tp}"[: MAX_NAME - len(DELETED_SUFFIX)] + DELETED_SUFFIX


def records_on_disk(log_dir: Path, tp: TopicPartition) -> tuple[Record, ...]:
    """Return the records of a replica, except any that is just being written; its broker may be alive or not.

    `log_dir` is the log directory of the broker. Raises FileNotFoundError if it has no such replica, or CorruptLog.
    """
    return read_records(log_dir / str(tp) / LOG_FILE)
