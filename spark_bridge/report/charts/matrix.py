"""The movement between places, as a matrix of coloured cells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Final

from attrs import frozen

OTHERS: Final = "others"
MOST: Final = 24
"""The most rows and columns that can be read; smaller amounts are combined as "others"."""

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
    """An amount that moves from one place to another."""

    source: str
    destination: str
    amount: int


def gathered(cells: Iterable[Cell], most: int = MOST) -> list[Cell]:
    """Return the same amounts, with all but the largest sources and destinations combined as "others"."""
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
class Matrix:
    """The amounts from sources (rows) to destinations (columns): the more, the darker. Lengths are in pixels.

    Attributes:
        title: What it shows.
        cells: The amounts, at least one.
        write: Returns an amount as text.
        rows: The names of the sources, in order.
        columns: The names of the destinations, in order.
        left: The left edge of the cells, beside the names of the rows.
        top: The upper edge of the cells, below the names of the columns.
        width: The width of a cell.
        height: The height of a cell.
        is_upright: Whether the names of columns stand upright, because they are wider than a column.
    """

    title: str
    cells: Sequence[Cell]
    write: Callable[[int], str]
    rows: Sequence[str]
    columns: Sequence[str]
    left: float
    top: float
    width: float
    height: float
    is_upright: bool

    @classmethod
    def of(cls, cells: Sequence[Cell], order: Sequence[str], write: Callable[[int], str], title: str) -> Matrix:
        """Return the matrix of at least one cell, with names in the given order and "others" last."""
        names = list(dict.fromkeys([*order, OTHERS]))
        sources, destinations = {cell.source for cell in cells}, {cell.destination for cell in cells}
        rows = [name for name in names if name in sources]
        columns = [name for name in names if name in destinations]
        left = max(_NARROWEST, 12 + _DIGIT * max(len(shortened(name)) for name in rows))
        width = min(_WIDEST, (_WIDTH - left) / len(columns))
        longest = _DIGIT * max(len(shortened(name)) for name in columns)
        is_upright = longest > width - 4
        top = 30 + (longest if is_upright else 14)
        return cls(title, cells, write, rows, columns, left, top, width, min(_TALLEST, width), is_upright)

    @property
    def description(self) -> str:
        """Return the greatest amount in a sentence."""
        most = max(self.cells, key=lambda cell: cell.amount)
        return f"Most goes from {most.source} to {most.destination}: {self.write(most.amount)}."

    @cached_property
    def greatest(self) -> int:
        """The greatest amount."""
        return max(cell.amount for cell in self.cells)

    def x(self, column: int) -> float:
        """Return the left edge of a column."""
        return self.left + column * self.width

    def y(self, row: int) -> float:
        """Return the upper edge of a row."""
        return self.top + row * self.height

    def opacity(self, cell: Cell) -> float:
        """Return the opacity of a cell, at most 1."""
        return _PALEST + (1 - _PALEST) * cell.amount / (self.greatest or 1)

    def text_class(self, cell: Cell) -> str:
        """Return the class of the amount on a cell, which decides its colour; empty if there is no room for text."""
        if self.width < _ROOM_FOR_TEXT:
            return ""
        opacity = self.opacity(cell)
        return "amount stronger" if opacity > _STRONGER else "amount strong" if opacity > _STRONG else "amount"


def shortened(name: str) -> str:
    """Return a name that fits beside a row or above a column."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
