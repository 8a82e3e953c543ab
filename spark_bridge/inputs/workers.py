"""What Spark's workers do with rows of inputs: read lines, check rows. They have PyArrow and NumPy, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from spark_bridge.inputs.checks import PARTITIONS, Checked
from spark_bridge.inputs.columns import ROW, Layout, raw_schema
from spark_bridge.inputs.text import Header, by_kind, csv_table, json_table

FILE: Final = "file"
"""The name of the file that a row is from."""

Batches = Iterator[pa.RecordBatch]
Check = Callable[[pa.Table], Checked]


@frozen
class Told:
    """What came of a file's rows, those that one batch had.

    Attributes:
        file: The file's name.
        checked: The good ones, and what is wrong with the others.
        brokers: Lines about brokers, and where each stands.
    """

    file: str
    checked: Checked
    brokers: Sequence[tuple[int, str]] = ()


Tell = Callable[[Batches], Iterator[Told]]
"""Checks the rows of an input."""


def check_rows(check: Check, layout: Layout, batches: Batches) -> Iterator[Told]:
    """Check raw rows: a raw table of the layout and FILE."""
    schema = raw_schema(layout)
    for batch in batches:
        table = pa.Table.from_batches([batch])
        for file in pc.unique(table[FILE]).to_pylist():
            rows = table.filter(pc.equal(table[FILE], file)).select(schema.names).cast(schema)
            yield Told(file, check(rows))


def check_json_lines(check: Check, layout: Layout, file: str, batches: Batches) -> Iterator[Told]:
    """Check JSON lines: `value` and ROW."""
    for lines, rows in _lines(batches):
        yield Told(file, check(json_table(lines, rows, layout)))


def check_snapshot_lines(check: Check, layout: Layout, file: str, batches: Batches) -> Iterator[Told]:
    """Check JSON lines, some of which are about brokers."""
    for lines, rows in _lines(batches):
        (about, numbers), brokers = by_kind(lines, rows)
        checked = check(json_table(about, numbers, layout)) if about else Checked(PARTITIONS.empty_table(), ())
        yield Told(file, checked, [(row, line) for line, row in zip(*brokers, strict=True)])


def check_csv(check: Check, layout: Layout, file: str, header: Header, batches: Batches) -> Iterator[Told]:
    """Check CSV lines: `value` and ROW (from 0, where the header is met)."""
    for lines, rows in _lines(batches):
        below = sum(row < header.row for row in rows[:1])
        if lines[below:]:
            yield Told(file, check(csv_table(header, lines[below:], rows[below:], layout)))


def _lines(batches: Batches) -> Iterator[tuple[list[str], list[int]]]:
    for batch in batches:
        numbered = zip(batch["value"].to_pylist(), batch[ROW].to_pylist(), strict=True)
        kept = [(line, row) for line, row in numbered if line.strip()]
        if kept:
            yield [line for line, _ in kept], [row for _, row in kept]
