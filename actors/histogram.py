"""A histogram of durations."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from attrs import define, field

BOUNDS_MS: Final = (1.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1_000.0, 5_000.0, 10_000.0, 60_000.0)
"""Upper bounds of the buckets, in milliseconds. One more bucket holds longer durations."""


@define
class Histogram:
    """Counts of durations by bucket, and the sum of all durations in milliseconds."""

    counts: list[int] = field(factory=lambda: [0] * (len(BOUNDS_MS) + 1), init=False)
    sum_ms: float = field(default=0.0, init=False)

    def observe(self, seconds: float) -> None:
        """Count a duration."""
        ms = 1000 * seconds
        self.counts[bisect_left(BOUNDS_MS, ms)] += 1
        self.sum_ms += ms

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self.counts)

    def cumulated(self) -> list[tuple[str, int]]:
        """Return, for each bound as text, the number of durations up to it; the last bound, "+Inf", covers all."""
        total, buckets = 0, []
        for bound, count in zip((*map(str, BOUNDS_MS), "+Inf"), self.counts, strict=True):
            total += count
            buckets.append((bound, total))
        return buckets
