"""Which leader epoch begins where in a log: what followers truncate by (KIP-101, KIP-279). Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter
from typing import Final

from transport.messages import Record
from transport.metadata import NO_EPOCH

MAX_EPOCH: Final = 2**31 - 1


class LeaderEpochs:
    """The epochs of a log's records, each with the offset of its first record. Both only grow."""

    def __init__(self) -> None:
        self._starts: list[tuple[int, int]] = []

    @property
    def latest(self) -> int:
        """The epoch of the last record, -1 for an empty log."""
        return self._starts[-1][0] if self._starts else NO_EPOCH

    def check_order(self, records: Iterable[Record]) -> None:
        """Raise ValueError unless these records can be appended: leader epochs never decrease and are not too large."""
        epoch = self.latest
        for record in records:
            if record.leader_epoch < epoch:
                raise ValueError(f"a record of leader epoch {record.leader_epoch} after one of {epoch}")
            if record.leader_epoch > MAX_EPOCH:
                raise ValueError(f"a record of leader epoch {record.leader_epoch}: the largest is {MAX_EPOCH}")
            epoch = record.leader_epoch

    def assign(self, epoch: int, offset: int) -> None:
        """Note that the record at `offset`, the next one, has `epoch`, which is not below the latest."""
        if epoch > self.latest:
            self._starts.append((epoch, offset))

    def truncate(self, end_offset: int) -> None:
        """Forget the epochs that begin at `end_offset` or later."""
        while self._starts and self._starts[-1][1] >= end_offset:
            self._starts.pop()

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """Return the largest epoch up to `epoch` that is in the log, and the offset where it ends.

        If the log has none, nothing of it agrees with a log that has: `epoch` itself, ending at 0.
        """
        after = bisect_right(self._starts, epoch, key=itemgetter(0))
        if after == 0:
            return epoch, 0
        end = self._starts[after][1] if after < len(self._starts) else log_end
        return self._starts[after - 1][0], end
