"""The work of Spark's workers on rows of inputs: reading lines and checking rows, with only PyArrow and NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from spark_bridge.inputs.checks import PARTITIONS, Checked
from spark_bridge.inputs.columns import ROW, TableLayout, raw_schema
from spark_bridge.inputs.text import Header, LinesByKind, csv_table, json_table

FILE: Final = "file"
"""The column with the name of a row's file."""

Batches = Iterator[pa.RecordBatch]
Check = Callable[[pa.Table], Checked]


@frozen
class Told:
    """The result of checking the rows of a file in one batch.

    Attributes:
        file: The file's name.
        checked: The good rows, and the faults of the others.
        brokers: The positions and the text of lines about brokers, and about the cluster.
    """

    file: str
    checked: Checked
    brokers: Sequence[tuple[int, str]] = ()


Tell = Callable[[Batches], Iterator[Told]]
"""Checks the rows of an input."""


def check_rows(check: Check, layout: TableLayout, batches: Batches) -> Iterator[Told]:
    """Check raw rows, given as a raw table of the layout with FILE."""
    schema = raw_schema(layout)
    for batch in batches:
        table = pa.Table.from_batches([batch])
        for file in pc.unique(table[FILE]).to_pylist():
            rows = table.filter(pc.equal(table[FILE], file)).select(schema.names).cast(schema)
            yield Told(file, check(rows))


def check_json_lines(check: Check, layout: TableLayout, file: str, batches: Batches) -> Iterator[Told]:
    """Check JSON lines, given as `value` and ROW."""
    for lines, rows in _lines(batches):
        yield Told(file, check(json_table(lines, rows, layout)))


def check_snapshot_lines(check: Check, layout: TableLayout, file: str, batches: Batches) -> Iterator[Told]:
    """Check JSON lines, some of which are about brokers, or about the cluster."""
    for lines, rows in _lines(batches):
        kinds = LinesByKind.of(lines, rows)
        about, numbers = kinds.partitions
        checked = check(json_table(about, numbers, layout)) if about else Checked(PARTITIONS.empty_table(), ())
        others = [(row, line) for of in (kinds.brokers, kinds.cluster) for line, row in zip(*of, strict=True)]
        yield Told(file, checked, others)


def check_csv(check: Check, layout: TableLayout, file: str, header: Header, batches: Batches) -> Iterator[Told]:
    """Check CSV lines, given as `value` and ROW (from 0); the header is skipped."""
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
