"""What the plots of load share: points, the scale in percent of a share, and the band of tolerance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

from attrs import frozen

from spark_bridge.report.markup import Node, el
from spark_bridge.report.measures import percent

WIDTH: Final = 560
HEIGHT: Final = 220
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 12, 34
_FLOOR: Final = HEIGHT - BOTTOM
_STEPS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


@frozen
class Point:
    """One broker, or one rack, in one measure.

    Attributes:
        name: What it is called.
        before: Its load as a part of its share; 1 is exactly that.
        after: The same once the plan is carried out.
        title: What a pointer that rests on it shows.
    """

    name: str
    before: float
    after: float
    title: str


@frozen
class Scale:
    """Where a load is drawn: from nothing at the floor to the greatest at the top."""

    top: float

    @classmethod
    def of(cls, points: Sequence[Point], band: float) -> Scale:
        """Return a scale on which all of these and the band of tolerance have room."""
        greatest = max([1 + 1.5 * band, *(max(point.before, point.after) for point in points)])
        step = _step(greatest)
        return cls(step * ceil(greatest / step - 1e-9))

    def y(self, part: float) -> float:
        """Return the height of a load."""
        return _FLOOR - (_FLOOR - TOP) * part / self.top

    def grid(self, band: float) -> Iterator[Node]:
        """Yield lines with labels, and the band between which brokers should end."""
        step = _step(self.top)
        for number in range(round(self.top / step) + 1):
            y = self.y(number * step)
            yield el("line", class_="grid", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y)
            yield el("text", percent(number * step), class_="tick", x=LEFT - 6, y=y + 4, text_anchor="end")
        low, high = self.y(max(0.0, 1 - band)), self.y(min(1 + band, self.top))
        # Also a band that is thinner than a line is to be seen.
        thickness = max(low - high, 2)
        middle = (low + high) / 2
        yield el("rect", class_="band", x=LEFT, width=WIDTH - LEFT - RIGHT, y=middle - thickness / 2, height=thickness)


def plot(title: str, description: str, *content: Node) -> Node:
    """Return a drawing with what it shows in words."""
    return el(
        "svg",
        el("title", title),
        el("desc", description),
        *content,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=title,
        class_="plot",
    )


def under(text: str) -> Node:
    """Return the label of the axis below a plot."""
    return el("text", text, class_="label", x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 4, text_anchor="middle")


def _step(greatest: float) -> float:
    """Return a distance of lines that makes about five of them."""
    scale = 1.0
    while greatest / scale > 5 * _STEPS[-1]:
        scale *= 10
    return scale * next(step for step in _STEPS if greatest / scale <= 5 * step)
