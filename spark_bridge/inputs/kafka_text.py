"""The output of Kafka's tools.

kafka-reassign-partitions --generate prints two documents, kafka-topics --describe prints lines, and kafka-log-dirs
--describe prints two lines of text and a document with the size of each replica.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_bridge.errors import PlanError
from spark_bridge.inputs.columns import (
    LOADS_TABLE,
    PARTITIONS_TABLE,
    ROW,
    WRONG,
    Column,
    TableLayout,
    from_objects,
    quoted,
    raw_table,
)
from spark_bridge.inputs.documents import Document
from spark_bridge.inputs.text import numbered_lines, open_text, text_before

_PROPOSED: Final = "Proposed partition reassignment configuration"

_HEADER: Final = r"^\s*Topic: ?\S+\s+(TopicId|PartitionCount): ?\S"

_WITH_ID: Final = r"^\s*Topic: ?(?P<topic>\S+)\s+TopicId: ?(?P<id>[a-zA-Z0-9_-]{22})\s"
"""The header of a topic with an id."""

_IDS: Final = r"\d{1,10}(?:, ?\d{1,10})*"
_LINE: Final = (
    r"^\s*Topic: ?(?P<topic>\S+)\s+Partition: ?(?P<partition>\d{1,10})"
    r"\s+Leader: ?(?P<leader>none|-1|\d{1,10})"
    rf"\s+Replicas: ?(?P<replicas>{_IDS})\s+Isr:(?: ?{_IDS})?"
    rf"(?:\s+Adding Replicas:(?: ?{_IDS})?\s+Removing Replicas: ?(?P<removing>(?:{_IDS})?))?"
    # Later versions print eligible leaders, and whether a topic is being deleted: neither changes where replicas are.
    r"(?:\s+(?:Elr|LastKnownElr|Offline|MarkedForDeletion):.*)?\s*$"
)

_REPLICAS: Final = TableLayout(
    "the output of kafka-log-dirs --describe",
    (
        Column("partition", pa.string(), frozenset({str}), "a name such as orders-0"),
        Column("size", pa.float64(), frozenset({int, float}), "a number"),
        Column("isFuture", pa.bool_(), frozenset({bool, type(None)}), "true or false"),
    ),
    # Other versions of Kafka may add more keys.
    is_closed=False,
)
_REPLICA: Final = r"^(?s)(?P<topic>.*)-(?P<partition>\d{1,10})$"


@contextmanager
def open_generated(path: Path) -> Iterator[Document]:
    """Open the current assignment in the output of kafka-reassign-partitions --generate; the proposal follows it.

    Raises:
        PlanError: It cannot be read, or is followed by something else.
    """
    with open_text(path) as file:
        text, lines = text_before(path, file)
        document = Document(path, file, text, lines=lines)
        yield document
        if document.peek() and (follows := document.line()) != _PROPOSED:
            raise PlanError(f"{path}: {_what_follows(follows)}")


def _what_follows(line: str) -> str:
    if "rollback" in line:
        return (
            "this is the output of kafka-reassign-partitions --execute, whose partitions have moved since: "
            "give the output of --generate, or of `klamm state dump`"
        )
    return f"{_PROPOSED!r} expected after the first document, as in the output of --generate, not {quoted(line)}"


def described_tables(path: Path) -> Iterator[pa.Table]:
    """Yield the output of kafka-topics --describe as raw tables of a snapshot; a row's position is its line number.

    Raises:
        PlanError: It cannot be read.
    """
    topic_ids: dict[str, str] = {}
    for lines, rows in numbered_lines(path):
        text = pa.array(lines, pa.string())
        is_header = pc.match_substring_regex(text, _HEADER)
        # The partitions of a topic follow its header.
        found = pc.extract_regex(text.filter(is_header), _WITH_ID)
        topic_ids |= {one["topic"]: one["id"] for one in found.to_pylist() if one is not None}
        if not pc.all(is_header).as_py():
            kept = pc.invert(is_header)
            yield _as_partitions(text.filter(kept), pa.array(rows, pa.int64()).filter(kept), topic_ids)


def _as_partitions(lines: pa.Array, rows: pa.Array, topic_ids: Mapping[str, str]) -> pa.Table:
    found = pc.extract_regex(lines, _LINE)
    said = {name: pc.struct_field(found, name) for name in ("topic", "partition", "leader", "replicas", "removing")}
    bad = [
        f"not a line of kafka-topics --describe: {quoted(line)}" for line in lines.filter(pc.is_null(found)).to_pylist()
    ]
    have = {
        "topic": said["topic"],
        "partition": said["partition"].cast(pa.int64()),
        "topic_id": pa.array(map(topic_ids.get, said["topic"].to_pylist()), pa.string()),
        "leader": pc.if_else(pc.equal(said["leader"], "none"), "-1", said["leader"]).cast(pa.int64()),
        "replicas": _lists(said["replicas"]),
        "removing_replicas": _lists(said["removing"]),
        ROW: rows,
        WRONG: pc.replace_with_mask(pa.nulls(len(lines), pa.string()), pc.is_null(found), pa.array(bad, pa.string())),
    }
    return raw_table(PARTITIONS_TABLE, have)


def _lists(texts: pa.Array) -> Any:  # noqa: ANN401 (Arrow's own types)
    """Return lists of broker ids written with commas; null for an empty text."""
    lists = pc.split_pattern(pc.replace_substring(texts, " ", ""), ",")
    return pc.if_else(pc.equal(texts, ""), None, lists).cast(pa.list_(pa.int64()))


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
                    yield from filter(None, _directories_of(path, broker))
        document.end()


def _directories_of(path: Path, broker: Any) -> list[list[Any]]:  # noqa: ANN401 (any JSON value)
    try:
        lists = [directory["partitions"] for directory in broker["logDirs"]]
    except (KeyError, TypeError):
        lists = [None]
    if not all(isinstance(replicas, list) for replicas in lists):
        raise PlanError(f"{path}: no brokers[].logDirs[].partitions[]: give the output of kafka-log-dirs --describe")
    return lists


def _as_loads(raw: pa.Table) -> pa.Table:
    parts = pc.extract_regex(raw["partition"], _REPLICA)
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
