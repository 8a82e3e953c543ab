"""Two curves for many brokers: their loads in order, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from spark_bridge.report.charts.axis import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Point, Scale, plot, under
from spark_bridge.report.markup import Node, el
from spark_bridge.report.measures import percent

_FLOOR: Final = HEIGHT - BOTTOM
_COLUMNS: Final = 100  # places where a resting pointer shows numbers


def curve(points: Sequence[Point], band: float, title: str, things: str) -> Node:
    """Draw loads from the least to the greatest, before and after, over the band of tolerance.

    Which broker is where differs between the two; a pointer that rests shows what part of them is below.
    """
    scale = Scale.of(points, band)
    before, after = (sorted(getattr(point, when) for point in points) for when in ("before", "after"))
    description = (
        f"Load of {len(points):,} {things} in percent of their shares, in order. Before: {_span(before)}."
        f" After: {_span(after)}."
    )
    return plot(
        title,
        description,
        *scale.grid(band),
        _line("before", before, scale),
        _line("after", after, scale),
        *_ends(len(points)),
        *_columns(before, after, things),
        under(f"{things}, from the least to the most loaded"),
    )


def _span(loads: Sequence[float]) -> str:
    return f"{percent(loads[0])} to {percent(loads[-1])}"


def _x(place: float, count: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * place / count


def _line(kind: str, loads: Sequence[float], scale: Scale) -> Node:
    """Return a line of steps; a load that many have in a row takes no more points than that of one."""
    path = [f"M{_x(0, len(loads)):.1f} {scale.y(loads[0]):.1f}"]
    drawn = f"{scale.y(loads[0]):.1f}"
    for place, load in enumerate(loads):
        y = f"{scale.y(load):.1f}"
        if y != drawn:
            path.append(f"H{_x(place, len(loads)):.1f}V{y}")
            drawn = y
    path.append(f"H{_x(len(loads), len(loads)):.1f}")
    return el("path", class_=f"line {kind}", d="".join(path))


def _ends(count: int) -> Iterator[Node]:
    for part, anchor in ((0, "start"), (0.5, "middle"), (1, "end")):
        text = f"{max(1, round(count * part)):,}"
        yield el("text", text, class_="tick", x=_x(part, 1), y=_FLOOR + 14, text_anchor=anchor)


def _columns(before: Sequence[float], after: Sequence[float], things: str) -> Iterator[Node]:
    count = len(before)
    columns = min(_COLUMNS, count)
    for column in range(columns):
        first, last = column * count // columns, (column + 1) * count // columns - 1
        text = (
            f"{things} {first + 1:,} to {last + 1:,} of {count:,} by load: before up to {percent(before[last])},"
            f" after up to {percent(after[last])}"
        )
        x = _x(column, columns)
        width = _x(column + 1, columns) - x
        yield el("rect", el("title", text), class_="hit", x=x, width=width, y=TOP, height=_FLOOR - TOP)
