"""Observers of disks."""

from __future__ import annotations

from collections.abc import Sequence

from transport.messages import Record
from transport.metadata import TopicPartition


class Unobserved:
    """Ignores all changes."""

    def appended(
        self, broker_id: int, tp: TopicPartition, topic_id: str, base_offset: int, records: Sequence[Record]
    ) -> None:
        pass

    def truncated(self, broker_id: int, tp: TopicPartition, topic_id: str, end_offset: int) -> None:
        pass

    def deleted(self, broker_id: int, tp: TopicPartition, topic_id: str) -> None:
        pass


class Notes:
    """Records all changes."""

    def __init__(self) -> None:
        self.lines: list[tuple[object, ...]] = []

    def appended(
        self, broker_id: int, tp: TopicPartition, topic_id: str, base_offset: int, records: Sequence[Record]
    ) -> None:
        self.lines.append(("appended", broker_id, tp, topic_id, base_offset, tuple(records)))

    def truncated(self, broker_id: int, tp: TopicPartition, topic_id: str, end_offset: int) -> None:
        self.lines.append(("truncated", broker_id, tp, topic_id, end_offset))

    def deleted(self, broker_id: int, tp: TopicPartition, topic_id: str) -> None:
        self.lines.append(("deleted", broker_id, tp, topic_id))
