"""Lines of text as raw tables: JSON lines and CSV.

Each line is decoded independently, so it makes no difference which lines are read together.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field, frozen
from pyarrow import csv as arrow_csv, json as arrow_json

from spark_bridge.errors import PlanError
from spark_bridge.inputs.columns import (
    MISFITS,
    ROW,
    TableLayout,
    from_objects,
    in_halves,
    quoted,
    raw_table,
    unreadable,
)

_CHUNK = 4 << 20
"""The number of characters that are read at a time."""

_LONGEST_LINE = 16 << 20
"""The longest line, in characters; real rows have less than a thousandth of that."""


_LONGEST_TEXT = 1 << 20
"""The most characters that are read of a line before a JSON document, or of its first line."""


def open_text(path: Path) -> TextIO:
    """Open a text file; bytes that are not UTF-8 become a character that no topic name may contain.

    Raises:
        PlanError: It cannot be read.
    """
    try:
        return path.open(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise PlanError(f"{path}: {error.strerror}") from None


def numbered_lines(path: Path) -> Iterator[tuple[list[str], list[int]]]:
    """Yield the nonblank lines of a file and their numbers, many at a time.

    Raises:
        PlanError: It cannot be read.
    """
    first = 1
    for lines in _lines(path):
        kept = [(line, number) for number, line in enumerate(lines, first) if line and not line.isspace()]
        first += len(lines)
        yield [line for line, _ in kept], [number for _, number in kept]


def _lines(path: Path) -> Iterator[list[str]]:
    """Yield the lines of a file, many at a time; at most _LONGEST_LINE characters of a line are held in memory."""
    rest, before = "", 0
    with open_text(path) as file:
        while text := file.read(_CHUNK):
            *lines, rest = (rest + text).split("\n")
            before += len(lines)
            if len(rest) > _LONGEST_LINE:
                raise PlanError(f"{path}: line {before + 1}: longer than {_LONGEST_LINE >> 20} MB")
            if lines:
                yield lines
    if rest:
        yield [rest]


def text_before(path: Path, file: TextIO) -> tuple[str, int]:
    """Read up to the line that begins a JSON document; return the part of that line that was read, and its number.

    Raises:
        PlanError: A line is longer than any text.
    """
    number = 1
    while (text := file.readline(_LONGEST_TEXT)) and not text.lstrip().startswith("{"):
        if len(text) == _LONGEST_TEXT and not text.endswith("\n"):
            raise PlanError(f"{path}: line {number}: longer than {_LONGEST_TEXT >> 20} MB")
        number += 1
    return text, number


def json_table(lines: Sequence[str], rows: Sequence[int], layout: TableLayout) -> pa.Table:
    """Return JSON lines as a raw table."""
    return in_halves(partial(_json_together, layout), partial(_json_one, layout), lines, rows)


def _json_together(layout: TableLayout, lines: Sequence[str], rows: Sequence[int]) -> pa.Table:
    schema = pa.schema([(column.name, column.type) for column in layout.columns])
    table = arrow_json.read_json(
        BytesIO("\n".join(lines).encode()),
        arrow_json.ReadOptions(use_threads=False, block_size=2 * _CHUNK),
        arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer"),
    )
    if layout.refused(table.column_names) is not None:
        # Arrow does not report which lines have the column, because a null looks like a missing value.
        return from_objects([json.loads(line) for line in lines], rows, layout)
    # A line with two objects makes more rows than lines, which `raw_table` does not accept either.
    return raw_table(layout, {**{name: table[name] for name in schema.names}, ROW: rows})


def _json_one(layout: TableLayout, line: str, row: int) -> pa.Table:
    try:
        return from_objects([json.loads(line)], [row], layout)
    except (ValueError, RecursionError):
        return unreadable(f"not JSON: {quoted(line)}", row, layout)


@frozen
class Header:
    """The header of a CSV file: the names of its columns, and the number of its line."""

    names: tuple[str, ...]
    row: int

    @classmethod
    def of(cls, path: Path, layout: TableLayout) -> Header:
        """Read the header, which must have the needed columns and no unknown one.

        Raises:
            PlanError: The file cannot be read, or does not have such a header.
        """
        lines, rows = next(numbered_lines(path), ([], []))
        try:
            names = [name.strip() for name in next(csv.reader(lines[:1]), [])]
        except csv.Error as error:
            raise PlanError(f"{path}: not CSV: {error}") from None
        layout.check(path, names, f" in its first line: name the columns there ({','.join(layout.names)})")
        if twice := [name for name in layout.names if names.count(name) > 1]:
            raise PlanError(f"{path}: column {twice[0]} is a duplicate")
        return cls(tuple(names), rows[0])


def csv_table(header: Header, lines: Sequence[str], rows: Sequence[int], layout: TableLayout) -> pa.Table:
    """Return the CSV lines after the header as a raw table."""
    return in_halves(partial(_csv_together, header, layout), partial(_csv_one, header, layout), lines, rows)


def _csv_together(header: Header, layout: TableLayout, lines: Sequence[str], rows: Sequence[int]) -> pa.Table:
    cells = _cells(header, layout, lines)
    have = {column.name: cells[column.name].cast(column.type) for column in layout.columns}
    return raw_table(layout, {**have, ROW: rows})


def _csv_one(header: Header, layout: TableLayout, line: str, row: int) -> pa.Table:
    try:
        cells = _cells(header, layout, [line])
    except MISFITS:
        return unreadable(f"{len(header.names)} columns expected: {quoted(line)}", row, layout)
    for column in layout.columns:
        try:
            cells[column.name].cast(column.type)
        except MISFITS:
            return unreadable(column.misfit(cells[column.name][0].as_py()), row, layout)
    raise AssertionError("a line was read alone that can be read with others")


def _cells(header: Header, layout: TableLayout, lines: Sequence[str]) -> pa.Table:
    """Return the cells as text, null if empty or if there is no such column.

    Raises:
        ValueError: A line has too many or too few cells, or an open quote.
    """
    text = "\n".join(lines)
    if '"' in text and any(line.count('"') % 2 for line in lines):
        raise ValueError
    table = arrow_csv.read_csv(
        BytesIO(text.encode()),
        arrow_csv.ReadOptions(column_names=header.names, use_threads=False),
        arrow_csv.ParseOptions(ignore_empty_lines=False),
        arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(header.names, pa.string()),
            include_columns=layout.names,
            include_missing_columns=True,
        ),
    )
    if len(table) != len(lines):
        raise ValueError
    return pa.table({name: _cell_texts(table[name]) for name in table.column_names})


def _cell_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
    return pc.if_else(pc.equal(texts, ""), None, texts)


Numbered = tuple[list[str], list[int]]
"""Lines and their numbers."""


@define
class LinesByKind:
    """The JSON lines of a snapshot: those about partitions, about brokers, and about the cluster.

    A line about a broker has `id` and no `topic`, one about the cluster has `controller`. An unreadable line counts as
    a bad line about a partition.
    """

    partitions: Numbered = field(factory=lambda: ([], []))
    brokers: Numbered = field(factory=lambda: ([], []))
    cluster: Numbered = field(factory=lambda: ([], []))

    @classmethod
    def of(cls, lines: Sequence[str], rows: Sequence[int]) -> LinesByKind:
        """Sort lines; `rows` are their numbers."""
        found = cls()
        for line, row in zip(lines, rows, strict=True):
            # Only the line about the cluster has both: requests that are in the store name topics.
            is_quick = '"topic"' in line and '"controller"' not in line
            kind = found.partitions if is_quick else found._kind(line)
            kind[0].append(line)
            kind[1].append(row)
        return found

    def _kind(self, line: str) -> Numbered:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            return self.partitions
        if not isinstance(row, dict) or "topic" in row:
            return self.partitions
        return self.brokers if "id" in row else self.cluster if "controller" in row else self.partitions
