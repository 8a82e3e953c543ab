"""Files of inputs as raw tables, whatever their format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Final

import pyarrow as pa
from attrs import frozen

from spark_bridge.errors import PlanError
from spark_bridge.inputs import unknown
from spark_bridge.inputs.columns import BROKERS_TABLE, LOADS_TABLE, PARTITIONS_TABLE, TableLayout, from_objects
from spark_bridge.inputs.documents import Document
from spark_bridge.inputs.faults import Place
from spark_bridge.inputs.formats import Format, format_of
from spark_bridge.inputs.kafka_text import described_tables, log_dir_tables, open_generated
from spark_bridge.inputs.parquet import parquet_files, parquet_tables
from spark_bridge.inputs.text import Header, by_kind, csv_table, json_table, numbered_lines, open_text

BROKERS_FILE: Final = "brokers.json"
"""The file with the brokers in a folder of Parquet, next to the partitions: {"brokers": [...]}."""

_CURE: Final = "give the output of `klamm state dump`"

_KEYS: Final = ("partitions", "brokers")
"""The lists of a document that planning reads."""

_OF_THE_DUMP: Final = ("controller", "partial", "reassign_partitions", "delete_topics", "undecodable")
"""The other lists in a document of `klamm state dump`, so that `reassign_partitions` is not taken for a misspelling."""

Tables = Callable[[], Iterator[pa.Table]]


@frozen
class Part:
    """One file of an input.

    Attributes:
        place: The file, and the name of its rows.
        tables: Reads it as raw tables.
        of_replicas: Whether a row is a replica, so that a partition may have several rows.
    """

    place: Place
    tables: Tables
    of_replicas: bool = False


@frozen
class Snapshot:
    """The files of a snapshot.

    Attributes:
        parts: The files with partitions.
        brokers: The brokers read so far, as raw tables; complete once the parts have been read.
        brokers_place: The file of `brokers`, and the name of its rows.
    """

    parts: tuple[Part, ...]
    brokers: list[pa.Table]
    brokers_place: Place

    def broker_parts(self) -> list[Part]:
        """Return the brokers, once the parts have been read."""
        return [Part(self.brokers_place, lambda: iter(self.brokers))]


def load_parts(path: Path) -> list[Part]:
    """Return the files of loads.

    Raises:
        PlanError: It cannot be read, or contains no loads.
    """
    if format_of(path) is Format.LOG_DIRS:
        return [Part(Place(path, "entry"), partial(log_dir_tables, path), of_replicas=True)]
    return _rows(path, LOADS_TABLE)


def broker_parts(path: Path) -> list[Part]:
    """Return the files of a table of brokers.

    Raises:
        PlanError: It cannot be read, or is not such a table.
    """
    if format_of(path) is Format.JSON_DOCUMENT:
        return [Part(Place(path, "entry"), partial(_brokers_of_document, path))]
    return _rows(path, BROKERS_TABLE)


def open_snapshot(path: Path) -> Snapshot:
    """Return the files of a snapshot.

    Raises:
        PlanError: It cannot be read, or is not a snapshot.
    """
    form, brokers = format_of(path), list[pa.Table]()
    if form is Format.PARQUET:
        parts, beside = tuple(_rows(path, PARTITIONS_TABLE)), path / BROKERS_FILE
        if beside.exists():
            brokers.extend(_brokers_of_document(beside))
        return Snapshot(parts, brokers, Place(beside, "entry"))
    readers: dict[Format, tuple[str, Tables]] = {
        Format.JSON_LINES: ("line", partial(_snapshot_lines, path, brokers)),
        Format.JSON_DOCUMENT: ("entry", partial(_snapshot_document, path, brokers)),
        Format.GENERATED: ("entry", partial(_generated_tables, path)),
        Format.DESCRIBED: ("line", partial(described_tables, path)),
    }
    if form not in readers:
        raise PlanError(f"{path}: not JSON: {_CURE}")
    unit, tables = readers[form]
    return Snapshot((Part(Place(path, unit), tables),), brokers, Place(path, unit))


def _rows(path: Path, layout: TableLayout) -> list[Part]:
    match format_of(path):
        case Format.PARQUET:
            return [Part(Place(file, "row"), partial(parquet_tables, file, layout)) for file in parquet_files(path)]
        case Format.JSON_LIST:
            return [Part(Place(path, "entry"), partial(_list_tables, path, layout))]
        case Format.JSON_LINES:
            return [Part(Place(path, "line"), partial(_json_line_tables, path, layout))]
        case Format.CSV:
            return [Part(Place(path, "line"), partial(_csv_tables, path, layout))]
        case Format.JSON_DOCUMENT:
            _refuse_foreign(path, layout)
    raise PlanError(f"{path}: not {layout.name}: give a JSON list, JSON lines, CSV or Parquet")


def _refuse_foreign(path: Path, layout: TableLayout) -> None:
    """Reject a document of another tool by name."""
    with open_text(path) as file:
        document = Document(path, file)
        for key in document.members():
            if key in unknown.FOREIGN:
                raise PlanError(f"{path}: {layout.complaint(key)}")
            document.value()


def _list_tables(path: Path, layout: TableLayout) -> Iterator[pa.Table]:
    with open_text(path) as file:
        document = Document(path, file)
        yield from _entries(document, layout)
        document.end()


def _entries(document: Document, layout: TableLayout) -> Iterator[pa.Table]:
    numbers = count(1)
    for objects in document.items():
        yield from_objects(objects, list(islice(numbers, len(objects))), layout)


def _json_line_tables(path: Path, layout: TableLayout) -> Iterator[pa.Table]:
    for lines, numbers in numbered_lines(path):
        if lines:
            yield json_table(lines, numbers, layout)


def _csv_tables(path: Path, layout: TableLayout) -> Iterator[pa.Table]:
    header = Header.of(path, layout)
    for lines, numbers in numbered_lines(path):
        below = 1 if numbers[:1] == [header.row] else 0
        if lines[below:]:
            yield csv_table(header, lines[below:], numbers[below:], layout)


def _snapshot_document(path: Path, brokers: list[pa.Table]) -> Iterator[pa.Table]:
    with open_text(path) as file:
        document = Document(path, file)
        yield from _partitions(document, brokers)
        document.end()


def _generated_tables(path: Path) -> Iterator[pa.Table]:
    with open_generated(path) as document:
        yield from _partitions(document, [])


def _partitions(document: Document, brokers: list[pa.Table]) -> Iterator[pa.Table]:
    """Yield the partitions of a document, and append its brokers to `brokers`."""
    found = False
    for key in document.members():
        if key == "partitions" and document.peek() == "[":
            found = True
            yield from _entries(document, PARTITIONS_TABLE)
        elif key == "brokers" and document.peek() == "[":
            brokers.extend(_entries(document, BROKERS_TABLE))
        else:
            _step_over(document, key, PARTITIONS_TABLE)
    if not found:
        raise PlanError(f"{document.path}: no list 'partitions' in it: {_CURE}")


def _brokers_of_document(path: Path) -> Iterator[pa.Table]:
    found = False
    with open_text(path) as file:
        document = Document(path, file)
        for key in document.members():
            if key == "brokers" and document.peek() == "[":
                found = True
                yield from _entries(document, BROKERS_TABLE)
            else:
                _step_over(document, key, BROKERS_TABLE)
        document.end()
    if not found:
        columns = ", ".join(BROKERS_TABLE.names)
        raise PlanError(f"{path}: no list 'brokers' in it: {BROKERS_TABLE.name} has one, with the columns {columns}")


def _step_over(document: Document, key: str, layout: TableLayout) -> None:
    """Skip a part of a document that planning does not need, unless its key is a misspelling of one that it reads.

    Raises:
        PlanError: The key is misspelt, belongs to another tool, or has no list where one is required.
    """
    if key in unknown.FOREIGN:
        raise PlanError(f"{document.path}: {layout.complaint(key)}")
    if key not in {*_KEYS, *_OF_THE_DUMP} and (meant := unknown.nearest(key, _KEYS)):
        raise PlanError(f"{document.path}: {key!r} is unknown: did you mean {meant}?")
    if key == "brokers" and document.peek() != "[":
        raise PlanError(f"{document.path}: 'brokers' must be a list")
    document.value()


def _snapshot_lines(path: Path, brokers: list[pa.Table]) -> Iterator[pa.Table]:
    for lines, numbers in numbered_lines(path):
        of_partitions, of_brokers = by_kind(lines, numbers)
        if of_brokers[0]:
            brokers.append(json_table(*of_brokers, BROKERS_TABLE))
        if of_partitions[0]:
            yield json_table(*of_partitions, PARTITIONS_TABLE)
