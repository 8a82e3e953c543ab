"""Files of inputs, whatever their format, as Spark's DataFrames with the functions that check their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial, reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa
from attrs import frozen
from pyarrow import parquet as pq
from pyspark.sql import (
    Column,
    DataFrame,
    SparkSession,
    functions as F,  # noqa: N812 (the name that all of PySpark's documentation uses)
)
from pyspark.sql.pandas.types import from_arrow_type

from spark_bridge.inputs.checks import check_loads, check_partitions
from spark_bridge.inputs.columns import LOADS_TABLE, PARTITIONS_TABLE, ROW, TableLayout, raw_schema
from spark_bridge.inputs.faults import Place
from spark_bridge.inputs.files import Part
from spark_bridge.inputs.formats import Format
from spark_bridge.inputs.parquet import parquet_schema, present
from spark_bridge.inputs.stand_ins import StandIns
from spark_bridge.inputs.text import Header
from spark_bridge.inputs.workers import (
    FILE,
    Check,
    Tell,
    check_csv,
    check_json_lines,
    check_rows,
    check_snapshot_lines,
)
from spark_bridge.remote_folder import SharedFolder, folder_url

_PARTITION_BITS: Final = 33
"""The number of low bits in Spark's increasing ids that number the rows of a partition; the others number it."""


@frozen
class RowKind:
    """A kind of rows: their check, and their columns before it."""

    check: Check
    layout: TableLayout


OF_PARTITIONS: Final = RowKind(check_partitions, PARTITIONS_TABLE)
OF_LOADS: Final = RowKind(check_loads, LOADS_TABLE)


@frozen
class Frame:
    """The files of one input as a DataFrame.

    Attributes:
        raw: Raw rows, or lines of text with Spark's increasing ids as ROW.
        tell: Checks the rows.
        places: The files, with the name of their rows in messages.
        of_lines: Whether the rows are lines.
        of_replicas: Whether a row is a replica, so that a partition may have several rows.
    """

    raw: DataFrame
    tell: Tell
    places: dict[str, Place]
    of_lines: bool = False
    of_replicas: bool = False

    def numbers(self, rows: Iterable[int]) -> dict[int, int]:
        """Return the position of rows in their file, given their ROW."""
        rows = list(rows)
        if not self.of_lines:
            return {row: row for row in rows}
        starts = {0: 0}
        if any(row >> _PARTITION_BITS for row in rows):
            counts = self.raw.groupBy(F.spark_partition_id().alias("part")).count().orderBy("part").collect()
            before = 0
            for part, count in counts:
                starts[part] = before
                before += count
        return {row: starts[row >> _PARTITION_BITS] + row % 2**_PARTITION_BITS + 1 for row in rows}


def open_frame(near: StandIns, part: Part, form: Format, kind: RowKind, scratch: SharedFolder) -> Frame:
    """Read an input that is one file of text.

    Args:
        near: The files that Spark reads.
        part: The file.
        form: Its format; the rows of a single document are first written to a file of Parquet.
        kind: The kind of its rows.
        scratch: A folder for that file, which is created and which workers must see.

    Raises:
        PlanError: It cannot be read or has the wrong content.
    """
    path, about = part.place.file, (kind.check, kind.layout, part.place.file.name)
    match form:
        case Format.CSV:
            return _of_lines(near, part, partial(check_csv, *about, Header.of(path, kind.layout)))
        case Format.JSON_LINES if kind is OF_PARTITIONS:
            return _of_lines(near, part, partial(check_snapshot_lines, *about))
        case Format.JSON_LINES:
            return _of_lines(near, part, partial(check_json_lines, *about))
        case _:
            return _converted(near.spark, part, kind, scratch)


def open_parquet(near: StandIns, parts: Sequence[Part], kind: RowKind) -> Frame:
    """Read an input in files of Parquet; those whose columns have the same types are read together.

    Raises:
        PlanError: It cannot be read, or has the wrong columns.
    """
    alike: dict[tuple[tuple[str, str], ...], list[Path]] = {}
    for part in parts:
        schema = parquet_schema(part.place.file)
        types = [(name, str(schema.field(name).type)) for name in present(part.place.file, schema, kind.layout)]
        alike.setdefault(tuple(types), []).append(part.place.file)
    where = {ROW: F.col("_metadata.row_index") + 1, FILE: F.col("_metadata.file_name")}
    groups = [
        _raw(near.spark, [*map(near.url, files)], kind, {n: F.col(n) for n, _ in types} | where)
        for types, files in alike.items()
    ]
    rows = reduce(DataFrame.unionAll, groups)
    return Frame(rows, partial(check_rows, kind.check, kind.layout), _places(parts))


def _converted(spark: SparkSession, part: Part, kind: RowKind, scratch: SharedFolder) -> Frame:
    """Convert a document piece by piece in this process, and have Spark read the result."""
    schema = raw_schema(kind.layout)
    name = "rows.parquet"
    if isinstance(scratch, Path):
        scratch.mkdir(parents=True)
        _write_rows(part, schema, scratch / name)
    else:
        scratch.claim()
        with TemporaryDirectory(prefix="klamm-plan-") as folder:
            _write_rows(part, schema, Path(folder) / name)
            scratch.put(Path(folder) / name)
    rows_url = f"{folder_url(scratch)}/{name}"
    names = {name: F.col(name) for name in schema.names}
    rows = _raw(spark, [rows_url], kind, names | {FILE: F.lit(part.place.file.name)})
    return Frame(rows, partial(check_rows, kind.check, kind.layout), _places([part]), of_replicas=part.of_replicas)


def _write_rows(part: Part, schema: pa.Schema, target: Path) -> None:
    with pq.ParquetWriter(target, schema) as writer:
        for table in part.tables():
            writer.write_table(table)


def _of_lines(near: StandIns, part: Part, tell: Tell) -> Frame:
    lines = near.spark.read.text(near.url(part.place.file)).select("value", F.monotonically_increasing_id().alias(ROW))
    return Frame(lines, tell, _places([part]), of_lines=True)


def _raw(spark: SparkSession, urls: Sequence[str], kind: RowKind, have: dict[str, Column]) -> DataFrame:
    """Return files of Parquet as raw rows with FILE; missing columns are null."""
    schema = pa.schema([*raw_schema(kind.layout), pa.field(FILE, pa.string())])
    chosen = [have.get(f.name, F.lit(None)).cast(from_arrow_type(f.type)).alias(f.name) for f in schema]
    return spark.read.parquet(*urls).select(*chosen)


def _places(parts: Sequence[Part]) -> dict[str, Place]:
    return {part.place.file.name: part.place for part in parts}
