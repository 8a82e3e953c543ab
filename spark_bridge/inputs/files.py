"""Files of inputs as raw tables, whatever their format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Final

import pyarrow as pa
from attrs import define, field, frozen

from spark_bridge.errors import PlanError
from spark_bridge.inputs import unknown
from spark_bridge.inputs.columns import (
    BROKERS_TABLE,
    LISTED_BROKERS,
    LOADS_TABLE,
    PARTITIONS_TABLE,
    TableLayout,
    from_objects,
    quoted,
)
from spark_bridge.inputs.documents import Document
from spark_bridge.inputs.faults import Place
from spark_bridge.inputs.formats import Format, format_of
from spark_bridge.inputs.kafka_text import described_tables, log_dir_tables, open_generated
from spark_bridge.inputs.parquet import parquet_files, parquet_tables
from spark_bridge.inputs.text import Header, LinesByKind, csv_table, json_table, numbered_lines, open_text

BROKERS_FILE: Final = "brokers.json"
"""The file with the brokers in a folder of Parquet, next to the partitions: {"brokers": [...]}."""

_CURE: Final = "give the output of `klamm state dump`"

_KEYS: Final = ("partitions", "brokers")
"""The lists of a document that planning reads."""

_CLUSTER_ID: Final = "cluster_id"
_OF_THE_DUMP: Final = (_CLUSTER_ID, "controller", "partial", "reassign_partitions", "delete_topics", "undecodable")
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


@define
class Snapshot:
    """The files of a snapshot.

    Attributes:
        brokers_place: The file of `brokers`, and the name of its rows.
        parts: The files with partitions.
        brokers: The brokers read so far, as raw tables; complete once the parts have been read.
        cluster_id: The id of the cluster, once the parts have been read; None if it is not known.
    """

    brokers_place: Place
    parts: tuple[Part, ...] = ()
    brokers: list[pa.Table] = field(factory=list)
    cluster_id: str | None = None

    def take_lines(self, lines: LinesByKind) -> None:
        """Add what lines say about brokers and the cluster.

        Raises:
            PlanError: The id of the cluster is no string.
        """
        if lines.brokers[0]:
            self.brokers.append(json_table(*lines.brokers, LISTED_BROKERS))
        for line in lines.cluster[0]:
            self.take_cluster_id(json.loads(line).get(_CLUSTER_ID))

    def take_cluster_id(self, value: object) -> None:
        """Take the id of the cluster, None if it is not known.

        Raises:
            PlanError: It is no string.
        """
        if value is not None and (not isinstance(value, str) or not value.isprintable() or not value):
            raise PlanError(f"{self.brokers_place.file}: {_CLUSTER_ID} must be a string, not {quoted(value)}")
        self.cluster_id = value

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
        return [Part(Place(path, "entry"), partial(_brokers_of_document, path, BROKERS_TABLE))]
    return _rows(path, BROKERS_TABLE)


def open_snapshot(path: Path) -> Snapshot:
    """Return the files of a snapshot.

    Raises:
        PlanError: It cannot be read, or is not a snapshot.
    """
    form = format_of(path)
    if form is Format.PARQUET:
        parts, beside = tuple(_rows(path, PARTITIONS_TABLE)), path / BROKERS_FILE
        snapshot = Snapshot(Place(beside, "entry"), parts)
        if beside.exists():
            snapshot.brokers.extend(_brokers_of_document(beside, LISTED_BROKERS, snapshot))
        return snapshot
    readers: dict[Format, tuple[str, Callable[[Path, Snapshot], Iterator[pa.Table]]]] = {
        Format.JSON_LINES: ("line", _snapshot_lines),
        Format.JSON_DOCUMENT: ("entry", _snapshot_document),
        Format.GENERATED: ("entry", _generated_tables),
        Format.DESCRIBED: ("line", lambda path, _: described_tables(path)),
    }
    if form not in readers:
        raise PlanError(f"{path}: not JSON: {_CURE}")
    unit, tables = readers[form]
    snapshot = Snapshot(Place(path, unit))
    snapshot.parts = (Part(Place(path, unit), partial(tables, path, snapshot)),)
    return snapshot


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


def _snapshot_document(path: Path, snapshot: Snapshot) -> Iterator[pa.Table]:
    with open_text(path) as file:
        document = Document(path, file)
        yield from _partitions(document, snapshot)
        document.end()


def _generated_tables(path: Path, snapshot: Snapshot) -> Iterator[pa.Table]:
    with open_generated(path) as document:
        yield from _partitions(document, snapshot)


def _partitions(document: Document, snapshot: Snapshot) -> Iterator[pa.Table]:
    """Yield the partitions of a document; its brokers and the id of its cluster go to `snapshot`."""
    found = False
    for key in document.members():
        if key == "partitions" and document.peek() == "[":
            found = True
            yield from _entries(document, PARTITIONS_TABLE)
        elif key == "brokers" and document.peek() == "[":
            snapshot.brokers.extend(_entries(document, LISTED_BROKERS))
        elif key == _CLUSTER_ID:
            snapshot.take_cluster_id(document.value())
        else:
            _step_over(document, key, PARTITIONS_TABLE)
    if not found:
        raise PlanError(f"{document.path}: no list 'partitions' in it: {_CURE}")


def _brokers_of_document(path: Path, layout: TableLayout, snapshot: Snapshot | None = None) -> Iterator[pa.Table]:
    found = False
    with open_text(path) as file:
        document = Document(path, file)
        for key in document.members():
            if key == "brokers" and document.peek() == "[":
                found = True
                yield from _entries(document, layout)
            elif key == _CLUSTER_ID and snapshot is not None:
                snapshot.take_cluster_id(document.value())
            else:
                _step_over(document, key, layout)
        document.end()
    if not found:
        columns = ", ".join(layout.names)
        raise PlanError(f"{path}: no list 'brokers' in it: {layout.name} has one, with the columns {columns}")


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


def _snapshot_lines(path: Path, snapshot: Snapshot) -> Iterator[pa.Table]:
    for lines, numbers in numbered_lines(path):
        kinds = LinesByKind.of(lines, numbers)
        snapshot.take_lines(kinds)
        if kinds.partitions[0]:
            yield json_table(*kinds.partitions, PARTITIONS_TABLE)
