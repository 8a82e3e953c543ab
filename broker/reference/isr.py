"""The rules by which a leader sets the high watermark, and adds followers to the ISR and removes them. Pure.

Times are seconds of `trio.current_time`, offsets are records.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final

from attrs import evolve, frozen

UNKNOWN_OFFSET: Final = -1


@frozen
class FollowerProgress:
    """A follower's progress according to its fetches: a fetch from an offset confirms all records before it."""

    log_end: int = UNKNOWN_OFFSET
    caught_up_at: float = -inf
    """The latest time at which it was at the leader's log end."""

    fetched_at: float = -inf
    leader_end_at_fetch: int = UNKNOWN_OFFSET

    def after_fetch(self, offset: int, leader_end: int, now: float) -> FollowerProgress:
        """Return the progress after a fetch from `offset`.

        A fetch from where the leader's log ended at the previous fetch shows that the follower was caught up at that
        time. Otherwise a follower would count as lagging whenever records keep arriving.
        """
        caught_up_at = self.caught_up_at
        if offset >= leader_end:
            caught_up_at = now
        elif offset >= self.leader_end_at_fetch:
            caught_up_at = max(caught_up_at, self.fetched_at)
        return FollowerProgress(offset, caught_up_at, now, leader_end)

    def at_new_leader_epoch(self, *, in_isr: bool, leader_end: int, now: float) -> FollowerProgress:
        """Return the progress at a new leader epoch: ISR members count as caught up now, other replicas do not."""
        if in_isr:
            return evolve(self, caught_up_at=now, fetched_at=now, leader_end_at_fetch=leader_end)
        return FollowerProgress(self.log_end)

    def is_lagging(self, leader_end: int, now: float, max_lag: float) -> bool:
        """Return whether an ISR member must leave, because it has been behind for longer than `max_lag`."""
        return self.log_end != leader_end and not self.keeps_up(now, max_lag)

    def is_in_sync(self, high_watermark: int, epoch_start: int) -> bool:
        """Return whether a replica has all records that an ISR member must have.

        These are the committed records, and the records that the leader had at the start of its epoch, which may be
        committed without this leader knowing it yet.
        """
        return self.log_end >= max(high_watermark, epoch_start)

    def keeps_up(self, now: float, max_lag: float) -> bool:
        """Return whether a replica was caught up within the last `max_lag`."""
        return now - self.caught_up_at <= max_lag


NO_PROGRESS: Final = FollowerProgress()
"""The progress of a follower that has not fetched."""


def next_high_watermark(current: int, log_ends: Iterable[int]) -> int:
    """Return the high watermark for the log ends of all replicas that must have a record. It never goes down."""
    return max(current, min(log_ends))
