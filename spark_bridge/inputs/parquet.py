"""Parquet as raw tables: one file, or all files of a folder in order of name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet as pq

from spark_bridge.errors import PlanError
from spark_bridge.inputs.columns import ROW, TableLayout, raw_schema, raw_table

_ROWS = 131_072
"""The number of rows that are read at a time."""


def parquet_files(path: Path) -> list[Path]:
    """Return the files of an input.

    Raises:
        PlanError: The folder has none, or not all of them belong to the table in it.
    """
    _refuse_table_format(path)
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise PlanError(f"{path}: no *.parquet in this folder")
    return files


def _refuse_table_format(path: Path) -> None:
    """Reject folders of table formats, which contain files that are no longer part of the table.

    Raises:
        PlanError: It is such a folder.
    """
    of_iceberg = [folder for folder in (path, path.parent) if any((folder / "metadata").glob("*.metadata.json"))]
    for name, is_it in (
        ("Delta", (path / "_delta_log").is_dir()),
        ("Hudi", (path / ".hoodie").is_dir()),
        ("Iceberg", of_iceberg == [path] or (bool(of_iceberg) and path.name == "data")),
    ):
        if is_it:
            raise PlanError(
                f"{path}: a {name} table, whose folder also has files that no longer belong to it: "
                "export its current rows as plain Parquet"
            )


def parquet_tables(path: Path, layout: TableLayout) -> Iterator[pa.Table]:
    """Yield one file's rows as raw tables.

    Raises:
        PlanError: It cannot be read, or has the wrong columns.
    """
    schema = raw_schema(layout)
    first = 1
    try:
        with pq.ParquetFile(path) as file:
            names = present(path, file.schema_arrow, layout)
            for batch in file.iter_batches(_ROWS, columns=names):
                have = {name: batch[name].cast(schema.field(name).type, safe=False) for name in names}
                yield raw_table(layout, {**have, ROW: np.arange(first, first + len(batch))})
                first += len(batch)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None


def parquet_schema(path: Path) -> pa.Schema:
    """Return the columns of one file.

    Raises:
        PlanError: It cannot be read.
    """
    try:
        return pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> PlanError:
    return PlanError(f"{path}: not readable as Parquet: {str(error).partition(chr(10))[0]}")


def present(path: Path, schema: pa.Schema, layout: TableLayout) -> list[str]:
    """Return the columns of a layout that a file has; each must have the right type.

    Raises:
        PlanError: A column is missing, unknown or of another type.
    """
    layout.check(path, schema.names, f": it has {', '.join(schema.names)}")
    names = [name for name in layout.names if name in schema.names]
    for column in layout.columns:
        if column.name in names and not _fits(schema.field(column.name).type, column.type):
            raise PlanError(
                f"{path}: column {column.name} must be {column.wants}, not {schema.field(column.name).type}"
            )
    return names


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(found):
        return True
    if pa.types.is_list(wanted):
        is_list = pa.types.is_list(found) or pa.types.is_large_list(found)
        return is_list and _fits(found.value_type, wanted.value_type)
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(found) and found != pa.uint64())
    if pa.types.is_floating(wanted):
        return bool(pa.types.is_integer(found) or pa.types.is_floating(found))
    return bool(pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_dictionary(found))
