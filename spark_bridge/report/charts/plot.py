"""Plots of load before and after, over the band of tolerance: bars for a few brokers or racks, curves for many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

from attrs import frozen

from spark_bridge.report.measures import percent

MOST_BARS: Final = 50
"""The most pairs of bars that can be told apart."""

WIDTH: Final = 560
HEIGHT: Final = 220
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 12, 34
FLOOR: Final = HEIGHT - BOTTOM
_ROOM: Final = WIDTH - LEFT - RIGHT
_STEPS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_DIGIT: Final = 7  # pixels
_WIDEST_BAR: Final = 44
_COLUMNS: Final = 100  # the places where a resting pointer shows numbers


@frozen
class Point:
    """One broker or rack in one measure.

    Attributes:
        name: Its name.
        before: Its load as a part of its share; 1 is exactly that.
        after: The same once the plan is carried out.
        title: The text for a pointer that rests on it.
    """

    name: str
    before: float
    after: float
    title: str


@frozen
class Scale:
    """The heights of loads, in pixels: zero at the floor, `top` at the top."""

    top: float

    @classmethod
    def of(cls, points: Sequence[Point], band: float) -> Scale:
        """Return a scale with room for all points and for the band of tolerance."""
        greatest = max([1 + 1.5 * band, *(max(point.before, point.after) for point in points)])
        step = _step(greatest)
        return cls(step * ceil(greatest / step - 1e-9))

    def y(self, part: float) -> float:
        """Return the height of a load."""
        return FLOOR - (FLOOR - TOP) * part / self.top

    def lines(self) -> Iterator[tuple[float, str]]:
        """Yield the height and the label of each line of the grid."""
        step = _step(self.top)
        for number in range(round(self.top / step) + 1):
            yield self.y(number * step), percent(number * step)

    def band(self, band: float) -> tuple[float, float]:
        """Return the top and the height of the band of tolerance, which is visible even if it is very narrow."""
        low, high = self.y(max(0.0, 1 - band)), self.y(min(1 + band, self.top))
        height = max(low - high, 2)
        return (low + high) / 2 - height / 2, height


@frozen
class Bar:
    """A bar from the floor up to a load. The style knows its `kind`."""

    kind: str
    x: float
    width: float
    part: float


@frozen
class Plot:
    """The marks of one plot.

    Attributes:
        title: What it shows.
        description: The same in a sentence or two, for those who cannot see it.
        axis: The label below it.
        scale: The heights of loads.
        band: The distance from a share that the plan aimed at, as a part of the share.
        ticks: The place, text and alignment of each label of the axis.
        bars: Groups of bars, each with the text for a resting pointer.
        curves: The kind and the SVG path of each curve.
        columns: Invisible columns from top to floor: place, width, and the text for a resting pointer.
    """

    title: str
    description: str
    axis: str
    scale: Scale
    band: float
    ticks: Sequence[tuple[float, str, str]]
    bars: Sequence[tuple[str, Sequence[Bar]]] = ()
    curves: Sequence[tuple[str, str]] = ()
    columns: Sequence[tuple[float, float, str]] = ()


def bars(points: Sequence[Point], band: float, title: str, things: str) -> Plot:
    """Return a bar before and a bar after for each point, in the order given."""
    slot = _ROOM / max(len(points), 1)
    width = min(slot * 0.4, _WIDEST_BAR)
    scale = Scale.of(points, band)
    groups = []
    for place, point in enumerate(points):
        x = LEFT + slot * place
        middle = x + slot / 2
        kind = "after over" if point.after > 1 + band + 1e-9 else "after"
        whole = Bar("hit", x, slot, scale.top)
        pair = (Bar("before", middle - width, width, point.before), Bar(kind, middle, width, point.after))
        groups.append((point.title, (whole, *pair)))
    description = f"Load of {len(points)} {things} in percent of their shares: a bar before and a bar after each."
    return Plot(title, description, things, scale, band, _names(points, slot), bars=groups)


def _names(points: Sequence[Point], slot: float) -> list[tuple[float, str, str]]:
    """Return the labels of as many points as there is room for."""
    longest = max((len(point.name) for point in points), default=0)
    every = max(1, -(-(longest * _DIGIT + 4) // max(int(slot), 1)))
    return [(LEFT + slot * (place + 0.5), points[place].name, "middle") for place in range(0, len(points), every)]


def curves(points: Sequence[Point], band: float, title: str, things: str) -> Plot:
    """Return two curves of loads, each from the least to the greatest.

    A place on them is not one broker: a resting pointer shows the loads up to which a part of the brokers come.
    """
    scale = Scale.of(points, band)
    before, after = sorted(point.before for point in points), sorted(point.after for point in points)
    description = (
        f"Load of {len(points):,} {things} in percent of their shares, in order. Before: {_span(before)}."
        f" After: {_span(after)}."
    )
    ends = ((0, "start"), (0.5, "middle"), (1, "end"))
    ticks = [(_x(part, 1), f"{max(1, round(len(points) * part)):,}", anchor) for part, anchor in ends]
    lines = [("before", _path(before, scale)), ("after", _path(after, scale))]
    axis = f"{things}, from the least to the most loaded"
    columns = list(_columns(before, after, things))
    return Plot(title, description, axis, scale, band, ticks, curves=lines, columns=columns)


def _span(loads: Sequence[float]) -> str:
    return f"{percent(loads[0])} to {percent(loads[-1])}"


def _x(place: float, count: int) -> float:
    return LEFT + _ROOM * place / count


def _path(loads: Sequence[float], scale: Scale) -> str:
    """Return a line of steps; a run of equal loads takes no more points than one load."""
    drawn = f"{scale.y(loads[0]):.1f}"
    path = [f"M{_x(0, len(loads)):.1f} {drawn}"]
    for place, load in enumerate(loads):
        y = f"{scale.y(load):.1f}"
        if y != drawn:
            path.append(f"H{_x(place, len(loads)):.1f}V{y}")
            drawn = y
    path.append(f"H{_x(len(loads), len(loads)):.1f}")
    return "".join(path)


def _columns(before: Sequence[float], after: Sequence[float], things: str) -> Iterator[tuple[float, float, str]]:
    count = len(before)
    columns = min(_COLUMNS, count)
    for column in range(columns):
        first, last = column * count // columns, (column + 1) * count // columns - 1
        text = (
            f"{things} {first + 1:,} to {last + 1:,} of {count:,} by load: before up to {percent(before[last])},"
            f" after up to {percent(after[last])}"
        )
        x = _x(column, columns)
        yield x, _x(column + 1, columns) - x, text


def _step(greatest: float) -> float:
    """Return the distance between lines that makes about five of them."""
    scale = 1.0
    while greatest / scale > 5 * _STEPS[-1]:
        scale *= 10
    return scale * next(step for step in _STEPS if greatest / scale <= 5 * step)
