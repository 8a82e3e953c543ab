"""How a leader judges its followers: high watermark, who may join the ISR and who must leave. Pure.

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
    """How far a follower has come, as its fetches tell: a fetch from an offset confirms all before it."""

    log_end: int = UNKNOWN_OFFSET
    caught_up_at: float = -inf
    """When it last was at the leader's log end."""

    fetched_at: float = -inf
    leader_end_at_fetch: int = UNKNOWN_OFFSET

    def after_fetch(self, offset: int, leader_end: int, now: float) -> FollowerProgress:
        """Take note of a fetch from `offset`.

        One that reaches where the leader's log ended at the fetch before was caught up at that time, so that a
        follower does not count as lagging because the leader never rests.
        """
        caught_up_at = self.caught_up_at
        if offset >= leader_end:
            caught_up_at = now
        elif offset >= self.leader_end_at_fetch:
            caught_up_at = max(caught_up_at, self.fetched_at)
        return FollowerProgress(offset, caught_up_at, now, leader_end)

    def at_new_leader_epoch(self, *, in_isr: bool, leader_end: int, now: float) -> FollowerProgress:
        """Begin a leader epoch: an ISR member has all the time allowed to show that it is caught up, others none."""
        if in_isr:
            return evolve(self, caught_up_at=now, fetched_at=now, leader_end_at_fetch=leader_end)
        return FollowerProgress(self.log_end)

    def is_lagging(self, leader_end: int, now: float, max_lag: float) -> bool:
        """Tell whether an ISR member must leave it: it is behind, and has been for longer than `max_lag`."""
        return self.log_end != leader_end and not self.keeps_up(now, max_lag)

    def is_in_sync(self, high_watermark: int, epoch_start: int) -> bool:
        """Tell whether a replica has what an ISR member must have.

        That is all that is committed, and all that the leader had when its epoch began: that may be committed without
        this leader knowing yet.
        """
        return self.log_end >= max(high_watermark, epoch_start)

    def keeps_up(self, now: float, max_lag: float) -> bool:
        """Tell whether a replica has been caught up within the last `max_lag`."""
        return now - self.caught_up_at <= max_lag


NO_PROGRESS: Final = FollowerProgress()
"""That of a follower which has not fetched."""


def next_high_watermark(current: int, log_ends: Iterable[int]) -> int:
    """Return the high watermark when these are the log ends of all whose copy it promises. It never goes down."""
    return max(current, min(log_ends))
