"""A limit on the bytes replicated per second (KIP-73). Pure: the caller passes the time."""

from __future__ import annotations

from typing import Final

from transport.settings import LONG_MAX

BURST_SECONDS: Final = 1.0
"""The time whose unused quota may be used later."""

SHARE_SECONDS: Final = 0.1
"""The time to save up quota before the next fetch; many small fetches would be inefficient."""

LONGEST_PAUSE_SECONDS: Final = 1.0
"""The longest time until the next attempt, because the rate may have been altered."""

_SHORTEST_PAUSE_SECONDS: Final = 0.001


class ReplicationQuota:
    """A rate in bytes per second, and the quota saved up. Times are in seconds of a monotonic clock.

    Records are never split. A record that exceeds the quota leads to a longer pause after it.
    """

    def __init__(self) -> None:
        self._rate = LONG_MAX
        self._saved = 0.0
        self._at = 0.0

    @property
    def rate(self) -> int:
        """The rate; the largest int64 means no limit."""
        return self._rate

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self._rate < LONG_MAX

    def alter(self, rate: int, now: float) -> None:
        """Change the rate from now on. Quota that is overdrawn stays so."""
        self._saved = min(self._saved_at(now), rate * BURST_SECONDS)
        self._at = now
        self._rate = rate

    def room(self, now: float) -> int:
        """Return the number of bytes that may be replicated now; 0 means to wait."""
        if not self.is_limited:
            return LONG_MAX
        saved = self._saved_at(now)
        return 0 if saved <= 0 or saved < self._rate * SHARE_SECONDS else max(1, int(saved))

    def pause(self, now: float) -> float:
        """Return the seconds until the next attempt."""
        if self.room(now):
            return 0.0
        if self._rate == 0:
            return LONGEST_PAUSE_SECONDS
        left = SHARE_SECONDS - self._saved_at(now) / self._rate
        return min(max(left, _SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)

    def record(self, count: int, now: float) -> None:
        """Charge the quota for replicated bytes."""
        if not self.is_limited:
            return
        self._saved = self._saved_at(now) - count
        self._at = now

    def _saved_at(self, now: float) -> float:
        if not self.is_limited:
            return 0.0
        return min(self._saved + self._rate * (now - self._at), self._rate * BURST_SECONDS)
