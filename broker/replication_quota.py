"""How many bytes per second may be replicated (KIP-73), on a clock that is handed in. Pure."""

from __future__ import annotations

from typing import Final

from transport.settings import LONG_MAX

BURST_SECONDS: Final = 1.0
"""What was not used of this time may be made up for."""

SHARE_SECONDS: Final = 0.1
"""For how long to save before the next fetch: many small ones would cost more than they bring."""

LONGEST_PAUSE_SECONDS: Final = 1.0
"""After which to look again, whatever the rate: it may have been altered."""

_SHORTEST_PAUSE_SECONDS: Final = 0.001


class ReplicationQuota:
    """A rate in bytes per second, and how much of it has been used. Times are in seconds that never go back.

    A record is never cut, so one may exceed what there is room for; it is paid for by a longer pause.
    """

    def __init__(self) -> None:
        self._rate = LONG_MAX
        self._saved = 0.0
        self._at = 0.0

    @property
    def rate(self) -> int:
        """The rate; the largest int64 is none."""
        return self._rate

    @property
    def is_limited(self) -> bool:
        """Whether there is a rate to keep to."""
        return self._rate < LONG_MAX

    def alter(self, rate: int, now: float) -> None:
        """Keep to another rate from now on; what is owed stays owed."""
        self._saved = min(self._saved_at(now), rate * BURST_SECONDS)
        self._at = now
        self._rate = rate

    def room(self, now: float) -> int:
        """Return how many bytes may come or go now, 0 if that is to wait for a while."""
        if not self.is_limited:
            return LONG_MAX
        saved = self._saved_at(now)
        return 0 if saved <= 0 or saved < self._rate * SHARE_SECONDS else max(1, int(saved))

    def pause(self, now: float) -> float:
        """Return in how many seconds to look for room again."""
        if self.room(now):
            return 0.0
        if self._rate == 0:
            return LONGEST_PAUSE_SECONDS
        left = SHARE_SECONDS - self._saved_at(now) / self._rate
        return min(max(left, _SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)

    def record(self, count: int, now: float) -> None:
        """Take note of bytes that came or went."""
        if not self.is_limited:
            return
        self._saved = self._saved_at(now) - count
        self._at = now

    def _saved_at(self, now: float) -> float:
        if not self.is_limited:
            return 0.0
        return min(self._saved + self._rate * (now - self._at), self._rate * BURST_SECONDS)
