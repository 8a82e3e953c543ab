"""The growth rate of a count over the last seconds. Pure."""

from __future__ import annotations

from typing import Final

from attrs import define, field

WINDOW_SECONDS: Final = 20.0
MARK_SECONDS: Final = 4.0
"""The least distance between kept counts, so that there are only a handful however often they are added."""

_SHORTEST_SECONDS: Final = 0.5
"""The shortest time over which a rate is meaningful."""


@define
class RateWindow:
    """Counts over the last WINDOW_SECONDS, or since the last but one if they are added less often."""

    _marks: list[tuple[float, int]] = field(factory=list, init=False)
    _latest: tuple[float, int] = field(default=(0.0, 0), init=False)

    def add(self, now: float, count: int) -> None:
        """Add the count at a time in seconds; times never decrease."""
        marks = self._marks
        self._latest = now, count
        while len(marks) > 1 and marks[1][0] <= now - WINDOW_SECONDS:
            del marks[0]
        if not marks or now - marks[-1][0] >= MARK_SECONDS:
            marks.append(self._latest)

    def rate(self) -> float | None:
        """Return the growth per second, negative if the count fell; None if it is not known yet."""
        if not self._marks:
            return None
        (began, first), (ended, last) = self._marks[0], self._latest
        seconds = ended - began
        return (last - first) / seconds if seconds >= _SHORTEST_SECONDS else None
