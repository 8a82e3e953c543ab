"""How fast a count grows, over the last seconds. Pure."""

from __future__ import annotations

from typing import Final

from attrs import define, field

WINDOW_SECONDS: Final = 20.0
MARK_SECONDS: Final = 4.0
"""How far apart the counts are that are kept, so that there are a handful however often somebody looks."""

_SHORTEST_SECONDS: Final = 0.5
"""Over less than that, a rate says nothing."""


@define
class RateWindow:
    """Counts of something over the last WINDOW_SECONDS, or if they come rarely since the last but one."""

    _marks: list[tuple[float, int]] = field(factory=list, init=False)
    _latest: tuple[float, int] = field(default=(0.0, 0), init=False)

    def add(self, now: float, count: int) -> None:
        """Take what has been counted at a time, in seconds; times never go down."""
        marks = self._marks
        self._latest = now, count
        while len(marks) > 1 and marks[1][0] <= now - WINDOW_SECONDS:
            del marks[0]
        if not marks or now - marks[-1][0] >= MARK_SECONDS:
            marks.append(self._latest)

    def rate(self) -> float | None:
        """Return by how much the count grew per second, below 0 if it fell; None if that cannot be told yet."""
        if not self._marks:
            return None
        (began, first), (ended, last) = self._marks[0], self._latest
        seconds = ended - began
        return (last - first) / seconds if seconds >= _SHORTEST_SECONDS else None
