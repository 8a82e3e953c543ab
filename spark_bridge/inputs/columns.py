"""Raw tables: the rows of a file in typed columns, each with its position and the faults that kept values out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
from attrs import frozen

from spark_bridge.errors import PlanError
from spark_bridge.inputs import unknown

T = TypeVar("T")

MISFITS: Final = (AttributeError, OverflowError, TypeError, ValueError, pa.ArrowException)
"""The exceptions of reading rows together if the values of one have other types."""

_LONGEST = 60


@frozen
class Column:
    """A column of a raw table.

    Attributes:
        name: Its name, in files too.
        type: Arrow's type.
        takes: The Python types that a JSON value may have; for a list, those of its members.
        wants: What a value must be, in words.
        is_needed: Whether the table must have it.
    """

    name: str
    type: pa.DataType
    takes: frozenset[type]
    wants: str
    is_needed: bool = False

    def array(self, objects: Sequence[Any]) -> pa.Array:
        """Return this column of decoded objects.

        Raises:
            TypeError: A value has another type; `MISFITS` lists the other exceptions.
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
        """Return the fault of a value of another type, in words."""
        return f"{self.name} must be {self.wants}, not {quoted(value)}"


@frozen
class TableLayout:
    """The columns of a table.

    Attributes:
        name: The name of such a table, with its article.
        columns: The columns that are read.
        beside: The names of other columns that are allowed.
        is_closed: Whether a table with any other column is rejected.
    """

    name: str
    columns: tuple[Column, ...]
    beside: frozenset[str] = frozenset()
    is_closed: bool = True

    @property
    def names(self) -> list[str]:
        """Return the names of the columns that are read."""
        return [column.name for column in self.columns]

    def refused(self, names: Collection[str]) -> str | None:
        """Return the column for which a table is rejected; None if all are allowed."""
        known = {*self.names, *self.beside}
        strange = [name for name in names if self.is_closed and name not in known]
        return next((name for name in strange if name in unknown.FOREIGN), strange[0] if strange else None)

    def complaint(self, name: str) -> str:
        """Return the fault of a column that is not allowed, in words."""
        known = ", ".join(self.names)
        if mark := unknown.separator(name):
            return f"its columns are separated by {unknown.SEPARATORS[mark]}: separate them by commas"
        if name in unknown.FOREIGN:
            return f"this is {unknown.FOREIGN[name]}: {self.name} has the columns {known}"
        if name in unknown.NOT_PLANNED:
            return f"column {name!r} cannot be planned with: {unknown.NOT_PLANNED[name]}"
        meant = unknown.nearest(name, self.names, self.beside)
        cure = f"did you mean {meant}? Known are" if meant else "known are"
        return f"column {name!r} is unknown: {cure} {known}"

    def check(self, path: Path, names: Sequence[str], missing: str) -> None:
        """Check the columns of a table.

        Args:
            path: The table.
            names: Its columns.
            missing: The end of the message about a missing column, after its name.

        Raises:
            PlanError: A column is unknown, or a needed one is missing.
        """
        lacks = [column.name for column in self.columns if column.is_needed and column.name not in names]
        strange = self.refused(names)
        # If no column resembles the missing one, this is a different kind of table, so its strange column is not named.
        is_near = strange is not None and (
            strange in unknown.FOREIGN or unknown.separator(strange) or unknown.nearest(strange, self.names)
        )
        if lacks and not is_near:
            raise PlanError(f"{path}: no column {lacks[0]}{missing}")
        if strange is not None:
            raise PlanError(f"{path}: {self.complaint(strange)}")


_NONE = type(None)
_TOPIC = Column("topic", pa.string(), frozenset({str, _NONE}), "a string", is_needed=True)
_PARTITION = Column("partition", pa.int64(), frozenset({int, _NONE}), "a whole number", is_needed=True)

MEASURES: Final = ("bytes", "bytes_in", "bytes_out")

_OF_PARTITIONS = (
    _TOPIC,
    _PARTITION,
    Column("topic_id", pa.string(), frozenset({str, _NONE}), "the id of a topic, a string"),
    Column("replicas", pa.list_(pa.int64()), frozenset({int, _NONE}), "a list of broker ids", is_needed=True),
    Column("removing_replicas", pa.list_(pa.int64()), frozenset({int, _NONE}), "a list of broker ids"),
    Column("leader", pa.int64(), frozenset({int, _NONE}), "a broker id, or -1 for none"),
    Column("min_insync_replicas", pa.int64(), frozenset({int, _NONE}), "a whole number"),
)

_OF_THE_DUMP = frozenset(
    {"adding_replicas", "isr", "leader_epoch", "controller_epoch", "partition_state", "failed_replicas", "partial"}
)
"""The other columns of partitions that `klamm state dump` and `klamm topic describe` write."""

_OF_KAFKA = frozenset({"log_dirs", "version"})
"""The other columns of Kafka's reassignment JSON, and of a partition's state in ZooKeeper."""

PARTITIONS_TABLE: Final = TableLayout("a snapshot", _OF_PARTITIONS, _OF_THE_DUMP | _OF_KAFKA | frozenset(MEASURES))
"""The columns of a snapshot. One table may contain a snapshot and its loads."""

LOADS_TABLE: Final = TableLayout(
    "a table of loads",
    (
        _TOPIC,
        _PARTITION,
        *(Column(name, pa.float64(), frozenset({int, float, _NONE}), "a number") for name in MEASURES),
    ),
    frozenset(column.name for column in _OF_PARTITIONS) | _OF_THE_DUMP | _OF_KAFKA,
)
"""The columns of loads: bytes, bytes per second in, bytes per second out."""

_OF_BROKERS = (
    Column("id", pa.int64(), frozenset({int, _NONE}), "a whole number", is_needed=True),
    Column("rack", pa.string(), frozenset({str, _NONE}), "a string"),
    Column("capacity", pa.float64(), frozenset({int, float, _NONE}), "a number"),
    Column("disk", pa.int64(), frozenset({int, _NONE}), "a whole number of bytes"),
    Column("state", pa.string(), frozenset({str, _NONE}), "a string"),
)
_ADDRESS = frozenset({"host", "port", "epoch"})

BROKERS_TABLE: Final = TableLayout("a table of brokers", _OF_BROKERS, _ADDRESS)
"""The columns of a table of brokers. It says how to plan, so it may not have log directories, which are not planned."""

LISTED_BROKERS: Final = TableLayout("a table of brokers", _OF_BROKERS, _ADDRESS | {"log_dirs"})
"""The columns of brokers in a snapshot. A dump also has their addresses, and their log directories."""

ROW: Final = "row"
"""The column with the position of a row in its file, from 1."""

WRONG: Final = "wrong"
"""The column with the fault that kept a row's values out of their columns, in words; null for nearly all rows."""

UNKNOWN: Final = "unknown"
"""The column with the complaint about a row's column that is not allowed, in words; null for nearly all rows."""


def raw_schema(layout: TableLayout) -> pa.Schema:
    """Return the schema of a raw table of this layout."""
    about = [(ROW, pa.int64()), (WRONG, pa.string()), (UNKNOWN, pa.string())]
    return pa.schema([*((c.name, c.type) for c in layout.columns), *about])


def in_halves(
    quick: Callable[[Sequence[T], Sequence[int]], pa.Table],
    one: Callable[[T, int], pa.Table],
    items: Sequence[T],
    rows: Sequence[int],
) -> pa.Table:
    """Read many items together; if one of them is bad, read each half, and so on.

    Good items are thus read quickly, and each bad one is read alone.

    Args:
        quick: Reads items with their positions; raises one of `MISFITS` if any of them is bad.
        one: Reads a single bad item.
        items: The items.
        rows: Their positions.
    """
    try:
        return quick(items, rows)
    except MISFITS:
        if len(items) == 1:
            return one(items[0], rows[0])
        middle = len(items) // 2
        halves = ((items[:middle], rows[:middle]), (items[middle:], rows[middle:]))
        return pa.concat_tables([in_halves(quick, one, *half) for half in halves])


def from_objects(objects: Sequence[object], rows: Sequence[int], layout: TableLayout) -> pa.Table:
    """Return decoded JSON objects as a raw table."""
    return in_halves(partial(_together, layout), partial(_misfit, layout), objects, rows)


def _together(layout: TableLayout, objects: Sequence[Any], rows: Sequence[int]) -> pa.Table:
    have: dict[str, Any] = {column.name: column.array(objects) for column in layout.columns}
    if layout.refused(set[str]().union(*objects)) is not None:
        strange = [layout.refused(row) for row in objects]
        said = {name: layout.complaint(name) for name in set(strange) if name is not None}
        have[UNKNOWN] = [None if name is None else said[name] for name in strange]
    return raw_table(layout, {**have, ROW: rows})


def raw_table(layout: TableLayout, have: Mapping[str, Any]) -> pa.Table:
    """Return a raw table of columns by name, of which ROW is needed; the others are null."""
    schema = raw_schema(layout)
    return pa.table([have.get(f.name, pa.nulls(len(have[ROW]), f.type)) for f in schema], schema)


def _misfit(layout: TableLayout, row: object, number: int) -> pa.Table:
    """Return a raw table of one bad row: the values that fit, and the fault."""
    if not isinstance(row, dict):
        return unreadable(f"a row must be an object, not {quoted(row)}", number, layout)
    have: dict[str, Any] = {ROW: [number]}
    for column in layout.columns:
        try:
            have[column.name] = column.array([row])
        except MISFITS:
            have.setdefault(WRONG, [column.misfit(row[column.name])])
    if (strange := layout.refused(row)) is not None:
        have[UNKNOWN] = [layout.complaint(strange)]
    return raw_table(layout, have)


def unreadable(wrong: str, row: int, layout: TableLayout) -> pa.Table:
    """Return a raw table of one unreadable row."""
    return raw_table(layout, {ROW: [row], WRONG: [wrong]})


def quoted(value: object) -> str:
    """Return a value as quoted in messages, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
