"""A pair of bars for each of a few brokers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from spark_bridge.report.charts.axis import BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH, Point, Scale, plot, under
from spark_bridge.report.markup import Node, el

MOST: Final = 50
"""Of how many bars can still be told apart."""

_FLOOR: Final = HEIGHT - BOTTOM
_LABEL: Final = 7  # pixels that a digit of a label takes
_WIDEST: Final = 44


def bars(points: Sequence[Point], band: float, title: str, things: str) -> Node:
    """Draw the load of each point before and after, in the order given, over the band of tolerance."""
    scale = Scale.of(points, band)
    slot = (WIDTH - LEFT - RIGHT) / max(len(points), 1)
    pairs = (_pair(point, LEFT + slot * place, slot, scale, band) for place, point in enumerate(points))
    description = f"Load of {len(points)} {things} in percent of their shares: a bar before and a bar after each."
    return plot(
        title, description, *scale.grid(band), *chain.from_iterable(pairs), *_names(points, slot), under(things)
    )


def _pair(point: Point, x: float, slot: float, scale: Scale, band: float) -> Iterator[Node]:
    width = min(slot * 0.4, _WIDEST)
    middle = x + slot / 2
    kind = "after over" if point.after > 1 + band + 1e-9 else "after"
    yield el(
        "g",
        el("title", point.title),
        _bar("hit", x, slot, scale.top, scale),
        _bar("before", middle - width, width, point.before, scale),
        _bar(kind, middle, width, point.after, scale),
    )


def _bar(kind: str, x: float, width: float, part: float, scale: Scale) -> Node:
    y = scale.y(part)
    return el("rect", class_=kind, x=x, width=width, y=y, height=_FLOOR - y)


def _names(points: Sequence[Point], slot: float) -> Iterator[Node]:
    longest = max((len(point.name) for point in points), default=0)
    every = max(1, -(-(longest * _LABEL + 4) // max(int(slot), 1)))
    for place in range(0, len(points), every):
        x = LEFT + slot * (place + 0.5)
        yield el("text", points[place].name, class_="tick", x=x, y=_FLOOR + 14, text_anchor="middle")
