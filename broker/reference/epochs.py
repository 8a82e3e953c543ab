"""The leader epochs of a log and their start offsets, by which followers truncate (KIP-101, KIP-279). Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter
from typing import Final

from transport.messages import Record
from transport.metadata import NO_EPOCH

MAX_EPOCH: Final = 2**31 - 1


class LeaderEpochs:
    """The epochs of a log's records, each with the offset of its first record; both increase along the log."""

    def __init__(self) -> None:
        self._starts: list[tuple[int, int]] = []

    @property
    def latest(self) -> int:
        """The epoch of the last record; -1 for an empty log."""
        return self._starts[-1][0] if self._starts else NO_EPOCH

    def check_order(self, records: Iterable[Record]) -> None:
        """Raise ValueError unless records can be appended: leader epochs must not decrease, and fit into an int32."""
        epoch = self.latest
        for record in records:
            if record.leader_epoch < epoch:
                raise ValueError(f"a record of leader epoch {record.leader_epoch} after one of {epoch}")
            if record.leader_epoch > MAX_EPOCH:
                raise ValueError(f"a record of leader epoch {record.leader_epoch}: the largest is {MAX_EPOCH}")
            epoch = record.leader_epoch

    def assign(self, epoch: int, offset: int) -> None:
        """Add the next record, at `offset`, with an `epoch` that is not below the latest."""
        if epoch > self.latest:
            self._starts.append((epoch, offset))

    def truncate(self, end_offset: int) -> None:
        """Remove the epochs that start at `end_offset` or later."""
        while self._starts and self._starts[-1][1] >= end_offset:
            self._starts.pop()

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """Return the largest epoch up to `epoch` in the log, and its end offset.

        If there is none, the log agrees nowhere with a log that has the epoch, and the result is `epoch`, ending at 0.
        """
        after = bisect_right(self._starts, epoch, key=itemgetter(0))
        if after == 0:
            return epoch, 0
        end = self._starts[after][1] if after < len(self._starts) else log_end
        return self._starts[after - 1][0], end
