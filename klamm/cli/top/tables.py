"""Tables that can be sorted, filtered and fitted to any width. Pure: the screen and plain text show the same ones."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from attrs import evolve, frozen
from rich.cells import cell_len, set_cell_size

from klamm.cli.output import harmless

_GAP: Final = 2
_CUT: Final = "…"


class Tone(Enum):
    """The importance of a cell. A tone never says more than the words beside it: terminals may lack colours."""

    PLAIN = "plain"
    FAINT = "faint"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


class Cell(NamedTuple):
    """A text, and the value that it is sorted by; None for one that is unknown and comes last in any order."""

    text: str
    key: Any = None
    tone: Tone = Tone.PLAIN


@frozen
class Column:
    """A column. In little room those with the highest `spare` are left out first; 0 always stays."""

    name: str
    to_right: bool = False
    spare: int = 0
    least: int = 0
    """The width below which the column is not cut; 0 if it is never cut."""


class Row(NamedTuple):
    """A row, its identity across looks, and what is told of it when it is selected."""

    id: Hashable
    cells: tuple[Cell, ...]
    detail: str


@frozen
class Order:
    """An order of rows: the number of a column, None for that of the table itself."""

    column: int | None = None
    is_reversed: bool = False

    def moved(self, by: int, columns: int) -> Order:
        """Return the order by the next column, or the one before."""
        if self.column is None:
            return Order(0 if by > 0 else columns - 1)
        return Order((self.column + by) % columns)


@frozen
class Table:
    """A table. `empty` is what to say if it has no rows."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    empty: str

    def arranged(self, order: Order, wanted: str = "") -> Table:
        """Return the table in an order, with the rows that contain all `wanted` words."""
        words = wanted.casefold().split()
        rows = [row for row in self.rows if _has(row, words)] if words else list(self.rows)
        if order.column is not None:
            rows = _sorted(rows, order.column, is_reversed=order.is_reversed)
        elif order.is_reversed:
            rows.reverse()
        return evolve(self, rows=tuple(rows))


def _has(row: Row, words: Iterable[str]) -> bool:
    text = " ".join([*(cell.text for cell in row.cells), row.detail]).casefold()
    return all(word in text for word in words)


def _sorted(rows: Sequence[Row], column: int, *, is_reversed: bool) -> list[Row]:
    known = [row for row in rows if row.cells[column].key is not None]
    known.sort(key=lambda row: row.cells[column].key, reverse=is_reversed)
    return known + [row for row in rows if row.cells[column].key is None]


@frozen
class Place:
    """A column on the screen: its number, and its width."""

    column: int
    width: int


def fitted(table: Table, room: int) -> list[Place]:
    """Return the columns that fit, and their widths; what is still too wide is cut at the edge."""
    natural = [cell_len(column.name) for column in table.columns]
    for row in table.rows:
        natural = [max(width, cell_len(harmless(cell.text))) for width, cell in zip(natural, row.cells, strict=True)]
    kept = list(range(len(natural)))
    floors = [_floor(column, width) for column, width in zip(table.columns, natural, strict=True)]
    while _total(kept, floors) > room and any(table.columns[number].spare for number in kept):
        kept.remove(max(kept, key=lambda number: table.columns[number].spare))
    widths = dict(zip(kept, _shrunk([natural[n] for n in kept], [floors[n] for n in kept], room), strict=True))
    return [Place(number, widths[number]) for number in kept]


def _floor(column: Column, natural: int) -> int:
    return min(natural, max(column.least, cell_len(column.name))) if column.least else natural


def _total(kept: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[number] for number in kept) + _GAP * (len(kept) - 1)


def _shrunk(natural: Sequence[int], floors: Sequence[int], room: int) -> list[int]:
    """Return widths that fit, if the floors do: the widest column gives way first."""
    widths = list(natural)
    over = sum(widths) + _GAP * (len(widths) - 1) - room
    while over > 0:
        spare = [width if width > floor else 0 for width, floor in zip(widths, floors, strict=True)]
        if not any(spare):
            break
        widths[spare.index(max(spare))] -= 1
        over -= 1
    return widths


def head(table: Table, places: Sequence[Place], order: Order) -> str:
    """Return the line of names, with a mark at the one that the rows are sorted by."""
    parts = []
    for place in places:
        column = table.columns[place.column]
        mark = ("↓" if order.is_reversed else "↑") if place.column == order.column else ""
        # The mark stands in the gap.
        parts.append(_aligned(column.name, place.width, to_right=column.to_right) + mark.ljust(_GAP))
    return "".join(parts).rstrip()


def parts_of(table: Table, row: Row, places: Sequence[Place]) -> list[tuple[str, Tone]]:
    """Return the texts of a row, gaps included, each with its tone."""
    parts: list[tuple[str, Tone]] = []
    for place in places:
        if parts:
            parts.append((" " * _GAP, Tone.PLAIN))
        cell, column = row.cells[place.column], table.columns[place.column]
        parts.append((_aligned(harmless(cell.text), place.width, to_right=column.to_right), cell.tone))
    return parts


def _aligned(text: str, width: int, *, to_right: bool) -> str:
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + _CUT if width else ""
    return " " * (width - length) + text if to_right else text + " " * (width - length)
