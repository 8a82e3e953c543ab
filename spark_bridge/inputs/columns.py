"""Tables of rows as a file has them: typed columns, and beside each row where it stands and what was no such type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

import pyarrow as pa
from attrs import frozen

T = TypeVar("T")

MISFITS: Final = (AttributeError, OverflowError, TypeError, ValueError, pa.ArrowException)
"""What reading rows raises where one is not as the others."""

_LONGEST = 60


@frozen
class Column:
    """A column of a raw table.

    Attributes:
        name: Its name, in files too.
        type: Arrow's type.
        takes: The Python types that a JSON value may have; for a list, those of its members.
        wants: What a value must be, in words.
        is_needed: Whether a table without it is none of these.
    """

    name: str
    type: pa.DataType
    takes: frozenset[type]
    wants: str
    is_needed: bool = False

    def array(self, objects: Sequence[Any]) -> pa.Array:
        """Take this column out of objects.

        Raises:
            TypeError: A value has another type; `MISFITS` has what else there may be.
        """
        values = [row.get(self.name) for row in objects]
        members = values
        if pa.types.is_list(self.type):
            if not set(map(type, values)) <= {list, type(None)}:
                raise TypeError
            members = list(chain.from_iterable(filter(None, values)))
        if not set(map(type, members)) <= self.takes:
            raise TypeError
        return pa.array(values, self.type)

    def misfit(self, value: object) -> str:
        """Say what is wrong with a value that is not of this column."""
        return f"{self.name} must be {self.wants}, not {quoted(value)}"


_NONE = type(None)
_TOPIC = Column("topic", pa.string(), frozenset({str, _NONE}), "a string", is_needed=True)
_PARTITION = Column("partition", pa.int64(), frozenset({int, _NONE}), "a whole number", is_needed=True)

PARTITION_COLUMNS: Final = (
    _TOPIC,
    _PARTITION,
    Column("replicas", pa.list_(pa.int64()), frozenset({int, _NONE}), "a list of broker ids", is_needed=True),
    Column("removing_replicas", pa.list_(pa.int64()), frozenset({int, _NONE}), "a list of broker ids"),
    Column("leader", pa.int64(), frozenset({int, _NONE}), "a broker id, or -1 for none"),
)
"""What a snapshot says of a partition."""

MEASURES: Final = ("bytes", "bytes_in", "bytes_out")

LOAD_COLUMNS: Final = (
    _TOPIC,
    _PARTITION,
    *(Column(name, pa.float64(), frozenset({int, float, _NONE}), "a number") for name in MEASURES),
)
"""What loads say of a partition: bytes, bytes per second in, bytes per second out."""

BROKER_COLUMNS: Final = (
    Column("id", pa.int64(), frozenset({int, _NONE}), "a whole number", is_needed=True),
    Column("rack", pa.string(), frozenset({str, _NONE}), "a string"),
    Column("capacity", pa.float64(), frozenset({int, float, _NONE}), "a number"),
    Column("disk", pa.int64(), frozenset({int, _NONE}), "a whole number of bytes"),
    Column("state", pa.string(), frozenset({str, _NONE}), "a string"),
)
"""What a snapshot or a table says of a broker."""

ROW: Final = "row"
"""Where a row stands in its file: a number from 1."""

WRONG: Final = "wrong"
"""What kept a row's values out of their columns, in words; null for nearly all rows."""


def raw_schema(columns: Sequence[Column]) -> pa.Schema:
    """Return the schema of a raw table of these columns."""
    return pa.schema([*((c.name, c.type) for c in columns), (ROW, pa.int64()), (WRONG, pa.string())])


def in_halves(
    quick: Callable[[Sequence[T], Sequence[int]], pa.Table],
    one: Callable[[T, int], pa.Table],
    items: Sequence[T],
    rows: Sequence[int],
) -> pa.Table:
    """Read many items together; where one of them does not let it, halves are tried, then halves of those.

    So the good ones stay quick, and each bad one is read alone.

    Args:
        quick: Reads items and where each stands; raises one of `MISFITS` if there is a bad one.
        one: Reads a single item that `quick` does not.
        items: What to read.
        rows: Where each stands.
    """
    try:
        return quick(items, rows)
    except MISFITS:
        if len(items) == 1:
            return one(items[0], rows[0])
        middle = len(items) // 2
        halves = ((items[:middle], rows[:middle]), (items[middle:], rows[middle:]))
        return pa.concat_tables([in_halves(quick, one, *half) for half in halves])


def from_objects(objects: Sequence[object], rows: Sequence[int], columns: Sequence[Column]) -> pa.Table:
    """Return decoded JSON objects as a raw table; what else they have than these columns is ignored."""
    return in_halves(partial(_together, columns), partial(_misfit, columns), objects, rows)


def _together(columns: Sequence[Column], objects: Sequence[Any], rows: Sequence[int]) -> pa.Table:
    return with_rows([column.array(objects) for column in columns], rows, columns)


def with_rows(arrays: Sequence[pa.Array], rows: Sequence[int], columns: Sequence[Column]) -> pa.Table:
    """Return a raw table of rows that all fit, given their columns and where each stands."""
    return pa.table([*arrays, pa.array(rows, pa.int64()), pa.nulls(len(rows), pa.string())], raw_schema(columns))


def _misfit(columns: Sequence[Column], row: object, number: int) -> pa.Table:
    """Return a raw table of the one row that does not fit: what fits of it, and what is wrong."""
    if not isinstance(row, dict):
        return unreadable(f"a row must be an object, not {quoted(row)}", number, columns)
    arrays, wrong = [], []
    for column in columns:
        try:
            arrays.append(column.array([row]))
        except MISFITS:
            arrays.append(pa.nulls(1, column.type))
            wrong.append(column.misfit(row[column.name]))
    return pa.table([*arrays, pa.array([number]), pa.array(wrong[:1])], raw_schema(columns))


def unreadable(wrong: str, row: int, columns: Sequence[Column]) -> pa.Table:
    """Return a raw table of one row of which nothing can be read."""
    nulls = [pa.nulls(1, column.type) for column in columns]
    return pa.table([*nulls, pa.array([row]), pa.array([wrong])], raw_schema(columns))


def quoted(value: object) -> str:
    """Return how a message shows a value: in full if that is short."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
