"""What moves from where to where, as a matrix of coloured cells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from attrs import frozen

from spark_bridge.report.markup import Node, el

OTHERS: Final = "others"
MOST: Final = 24
"""How many rows and columns can be read; what is less goes together as "others"."""

_WIDTH: Final = 1120
_DIGIT: Final = 7.2
_LONGEST: Final = 18
_TALLEST: Final = 30
_WIDEST: Final = 110
_NARROWEST: Final = 44
_ROOM_FOR_TEXT: Final = 62
_PALEST: Final = 0.08
_STRONG, _STRONGER = 0.62, 0.85  # where the style may want another colour for a text on top


@frozen
class Cell:
    """An amount that goes from one place to another."""

    source: str
    destination: str
    amount: int


def gathered(cells: Iterable[Cell], most: int = MOST) -> list[Cell]:
    """Return the same amounts with all but the greatest sources and destinations together as "others"."""
    cells = list(cells)
    sources = _greatest(((cell.source, cell.amount) for cell in cells), most)
    destinations = _greatest(((cell.destination, cell.amount) for cell in cells), most)
    sums: dict[tuple[str, str], int] = defaultdict(int)
    for cell in cells:
        source = cell.source if cell.source in sources else OTHERS
        sums[source, cell.destination if cell.destination in destinations else OTHERS] += cell.amount
    return [Cell(source, destination, amount) for (source, destination), amount in sums.items()]


def _greatest(amounts: Iterable[tuple[str, int]], most: int) -> set[str]:
    sums: dict[str, int] = defaultdict(int)
    for name, amount in amounts:
        sums[name] += amount
    ranked = sorted(sums, key=lambda name: (-sums[name], name))
    return set(ranked if len(ranked) <= most else ranked[: most - 1])


@frozen
class _Layout:
    """Where cells are: rows are sources, columns destinations."""

    rows: Sequence[str]
    columns: Sequence[str]
    left: float
    top: float
    width: float
    height: float
    upright: bool

    @classmethod
    def of(cls, rows: Sequence[str], columns: Sequence[str]) -> _Layout:
        left = max(_NARROWEST, 12 + _DIGIT * max(len(_short(name)) for name in rows))
        width = min(_WIDEST, (_WIDTH - left) / len(columns))
        longest = _DIGIT * max(len(_short(name)) for name in columns)
        upright = longest > width - 4
        return cls(rows, columns, left, 30 + (longest if upright else 14), width, min(_TALLEST, width), upright)

    def x(self, column: int) -> float:
        return self.left + column * self.width

    def y(self, row: int) -> float:
        return self.top + row * self.height

    def column_label(self, place: int) -> Node:
        x, y = self.x(place) + self.width / 2, self.top - 6
        turn = f"rotate(-90 {x + 4:.1f} {y:.1f})" if self.upright else None
        x, anchor = (x + 4, "start") if self.upright else (x, "middle")
        return el(
            "text",
            _short(self.columns[place]),
            class_="tick",
            x=x,
            y=y,
            text_anchor=anchor,
            transform=turn,
        )

    def row_label(self, place: int) -> Node:
        y = self.y(place) + self.height / 2 + 4
        return el("text", _short(self.rows[place]), class_="tick", x=self.left - 6, y=y, text_anchor="end")


def matrix(cells: Sequence[Cell], order: Sequence[str], write: Callable[[int], str], title: str) -> Node:
    """Draw amounts from sources (rows) to destinations (columns): the more, the darker.

    Args:
        cells: At least one.
        order: In which order names are to stand; "others" comes last.
        write: How an amount is written.
        title: What the drawing shows.
    """
    sources, destinations = {cell.source for cell in cells}, {cell.destination for cell in cells}
    rows, columns = (
        [name for name in dict.fromkeys([*order, OTHERS]) if name in ends] for ends in (sources, destinations)
    )
    layout = _Layout.of(rows, columns)
    greatest = max(cell.amount for cell in cells) or 1
    width, height = max(layout.x(len(columns)), layout.left + 160), layout.y(len(rows)) + 4
    most = max(cells, key=lambda cell: cell.amount)
    return el(
        "svg",
        el("title", title),
        el("desc", f"Most goes from {most.source} to {most.destination}: {write(most.amount)}."),
        el("text", "from", class_="label", x=layout.left - 6, y=12, text_anchor="end"),
        el("text", "to", class_="label", x=layout.left, y=12),
        *map(layout.row_label, range(len(rows))),
        *map(layout.column_label, range(len(columns))),
        *_backdrop(layout),
        *(_cell(cell, layout, cell.amount / greatest, write) for cell in cells),
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        role="img",
        aria_label=title,
        class_="matrix",
    )


def _backdrop(layout: _Layout) -> Iterator[Node]:
    width, height = layout.width * len(layout.columns), layout.height * len(layout.rows)
    yield el("rect", class_="empty", x=layout.left, y=layout.top, width=width, height=height)


def _cell(cell: Cell, layout: _Layout, part: float, write: Callable[[int], str]) -> Node:
    x, y = layout.x(layout.columns.index(cell.destination)), layout.y(layout.rows.index(cell.source))
    strength = _PALEST + (1 - _PALEST) * part
    text = None
    if layout.width >= _ROOM_FOR_TEXT:
        kind = "amount stronger" if strength > _STRONGER else "amount strong" if strength > _STRONG else "amount"
        middle = (x + layout.width / 2, y + layout.height / 2 + 4)
        text = el("text", write(cell.amount), class_=kind, x=middle[0], y=middle[1], text_anchor="middle")
    return el(
        "g",
        el("title", f"{cell.source} to {cell.destination}: {write(cell.amount)}"),
        el(
            "rect",
            class_="cell",
            x=x + 1,
            y=y + 1,
            width=layout.width - 2,
            height=layout.height - 2,
            fill_opacity=strength,
        ),
        text,
    )


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
