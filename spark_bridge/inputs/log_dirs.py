"""The output of `kafka-log-dirs --describe`: two lines of text, then one JSON document with every replica's size."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.errors import PlanError
from spark_bridge.inputs.columns import LOADS_TABLE, ROW, WRONG, Column, Layout, from_objects, quoted, raw_table
from spark_bridge.inputs.documents import Document
from spark_bridge.inputs.text import open_text, text_before

_REPLICAS: Final = Layout(
    "the output of kafka-log-dirs --describe",
    (
        Column("partition", pa.string(), frozenset({str}), "a name such as orders-0"),
        Column("size", pa.float64(), frozenset({int, float}), "a number"),
        Column("isFuture", pa.bool_(), frozenset({bool, type(None)}), "true or false"),
    ),
    # Other versions of Kafka may add more keys.
    is_closed=False,
)
_NAME: Final = r"^(?s)(?P<topic>.*)-(?P<partition>\d{1,10})$"


def log_dir_tables(path: Path) -> Iterator[pa.Table]:
    """Yield every replica's size as raw tables of loads, one table for each log directory.

    A row is the number of the replica in the file. A future replica, one that is being moved to another directory of
    its broker, is left out.

    Raises:
        PlanError: It cannot be read, or is not the output of that command.
    """
    numbers = count(1)
    for replicas in _directories(path):
        raw = from_objects(replicas, list(islice(numbers, len(replicas))), _REPLICAS)
        yield _as_loads(raw.filter(pc.invert(pc.fill_null(raw["isFuture"], fill_value=False))))


def _directories(path: Path) -> Iterator[list[Any]]:
    """Yield the replicas of each log directory that has any."""
    with open_text(path) as file:
        text, lines = text_before(path, file)
        document = Document(path, file, text, lines=lines)
        for key in document.members():
            if key != "brokers":
                document.value()
                continue
            for brokers in document.items():
                for broker in brokers:
                    yield from filter(None, _lists(path, broker))
        document.end()


def _lists(path: Path, broker: Any) -> list[list[Any]]:  # noqa: ANN401 (any JSON value)
    try:
        lists = [directory["partitions"] for directory in broker["logDirs"]]
    except (KeyError, TypeError):
        lists = [None]
    if not all(isinstance(replicas, list) for replicas in lists):
        raise PlanError(f"{path}: no brokers[].logDirs[].partitions[]: give the output of kafka-log-dirs --describe")
    return lists


def _as_loads(raw: pa.Table) -> pa.Table:
    parts = pc.extract_regex(raw["partition"], _NAME)
    is_name = pc.is_valid(parts)
    wrong = [
        None if good else f"partition must be a name such as orders-0, not {quoted(name)}"
        for good, name in zip(is_name.to_pylist(), raw["partition"].to_pylist(), strict=True)
    ]
    have = {
        "topic": pc.struct_field(parts, "topic"),
        "partition": pc.struct_field(parts, "partition").cast(pa.int64()),
        "bytes": raw["size"],
        ROW: raw[ROW],
        WRONG: pc.coalesce(raw[WRONG], pa.array(wrong, pa.string())),
    }
    return raw_table(LOADS_TABLE, have)
