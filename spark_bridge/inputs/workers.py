"""What Spark's workers do with rows of inputs: read lines, check rows. They have PyArrow and NumPy, and no more.

Good rows leave as they are; of bad ones, what they have in common, once for each batch: a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.inputs.checks import Checked
from spark_bridge.inputs.columns import ROW, Column, raw_schema
from spark_bridge.inputs.text import Header, by_kind, csv_table, json_table

FILE: Final = "file"
"""The name of the file that a row is from."""

BROKER: Final = "broker"
"""The fault of a note that is none: it carries a line about a broker."""

NOTE: Final = pa.schema([("fault", pa.string()), ("rows", pa.int64()), ("detail", pa.string())])
"""What a note adds to a row: the fault, how many rows have it, and what is wrong with the first, in words."""

Batches = Iterator[pa.RecordBatch]
Check = Callable[[pa.Table], Checked]


def check_rows(check: Check, columns: Sequence[Column], good: pa.Schema, batches: Batches) -> Batches:
    """Check raw rows: a raw table of `columns` and FILE in, rows of `good`, FILE and NOTE out."""
    schema = raw_schema(columns)
    for batch in batches:
        table = pa.Table.from_batches([batch])
        for file in pc.unique(table[FILE]).to_pylist():
            rows = table.filter(pc.equal(table[FILE], file)).select(schema.names).cast(schema)
            yield from _told(check(rows), good, file)


def check_json_lines(check: Check, columns: Sequence[Column], good: pa.Schema, file: str, batches: Batches) -> Batches:
    """Check JSON lines: `value` and ROW in, rows of `good`, FILE and NOTE out."""
    for lines, rows in _lines(batches):
        yield from _told(check(json_table(lines, rows, columns)), good, file)


def check_snapshot_lines(
    check: Check, columns: Sequence[Column], good: pa.Schema, file: str, batches: Batches
) -> Batches:
    """Check JSON lines, some of which are about brokers: these become notes."""
    for lines, rows in _lines(batches):
        (about, numbers), brokers = by_kind(lines, rows)
        if about:
            yield from _told(check(json_table(about, numbers, columns)), good, file)
        yield from _notes([(row, BROKER, 1, line) for line, row in zip(*brokers, strict=True)], good, file)


def check_csv(
    check: Check, columns: Sequence[Column], good: pa.Schema, file: str, header: Header, batches: Batches
) -> Batches:
    """Check CSV lines: `value` and ROW (from 0, where the header is met) in, rows of `good`, FILE and NOTE out."""
    for lines, rows in _lines(batches):
        below = sum(row < header.row for row in rows[:1])
        if lines[below:]:
            yield from _told(check(csv_table(header, lines[below:], rows[below:], columns)), good, file)


def _lines(batches: Batches) -> Iterator[tuple[list[str], list[int]]]:
    for batch in batches:
        numbered = zip(batch["value"].to_pylist(), batch[ROW].to_pylist(), strict=True)
        kept = [(line, row) for line, row in numbered if line.strip()]
        if kept:
            yield [line for line, _ in kept], [row for _, row in kept]


def _told(checked: Checked, good: pa.Schema, file: str) -> Batches:
    rows = checked.good
    arrays = [*rows.columns, pa.repeat(file, len(rows)), *(pa.nulls(len(rows), field.type) for field in NOTE)]
    yield from pa.table(arrays, told_schema(good)).to_batches()
    yield from _notes([(bad.row, bad.fault, bad.rows, bad.detail) for bad in checked.bad], good, file)


def _notes(notes: Sequence[tuple[int, str, int, str]], good: pa.Schema, file: str) -> Batches:
    if notes:
        rows = [{ROW: row, FILE: file, "fault": str(f), "rows": n, "detail": detail} for row, f, n, detail in notes]
        yield from pa.Table.from_pylist(rows, told_schema(good)).to_batches()


def told_schema(good: pa.Schema) -> pa.Schema:
    """Return the schema of rows and notes."""
    return pa.schema([*good, pa.field(FILE, pa.string()), *NOTE])
