"""Kafka's reassignment JSON, as used by `kafka-reassign-partitions`, in documents of limited size.

Besides Kafka's fields, each partition has `before`, its replicas when the plan was made. `klamm reassignment execute`
rejects a plan whose partitions no longer have these replicas; Kafka's tools ignore the field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from spark_bridge.errors import PlanError

LIMIT: Final = 900_000
"""The most bytes of a document: Kafka's tool writes it to one znode, and ZooKeeper accepts 1 MB."""

_HEAD: Final = b'{"version":1,"partitions":[\n'
_TAIL: Final = b"\n]}\n"
_BETWEEN: Final = b",\n"


@frozen
class StepFiles:
    """The documents of some partitions of a plan: the one that moves them, and the one that undoes it."""

    plan: bytes
    rollback: bytes


def steps(batches: Iterable[pa.RecordBatch], limit: int = LIMIT) -> Iterator[StepFiles]:
    """Yield the rows of a plan as documents of at most `limit` bytes, with one partition per line.

    The rollback of a step names the same partitions as its plan, so that each file can be undone by itself.

    Raises:
        PlanError: A single partition does not fit.
    """
    room = limit - len(_HEAD) - len(_TAIL) + len(_BETWEEN)
    lines: list[tuple[bytes, bytes]] = []
    size = 0
    for pair in _lines(batches):
        needed = max(map(len, pair)) + len(_BETWEEN)
        if needed > room:
            text = pair[0].decode()
            raise PlanError(f"files of {limit:,} bytes cannot hold {text}: allow {limit + needed - room:,} or more")
        if size + needed > room:
            yield _step(lines)
            lines, size = [], 0
        lines.append(pair)
        size += needed
    if lines:
        yield _step(lines)


def _step(lines: list[tuple[bytes, bytes]]) -> StepFiles:
    plan, rollback = (_HEAD + _BETWEEN.join(column) + _TAIL for column in zip(*lines, strict=True))
    return StepFiles(plan, rollback)


def _lines(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[bytes, bytes]]:
    """Yield each partition's entry in the plan and in the rollback."""
    for batch in batches:
        yield from zip(_entries(batch, "before", "after"), _entries(batch, "after", "before"), strict=True)


def _entries(batch: pa.RecordBatch, start: str, target: str) -> list[bytes]:
    """Return JSON objects, composed by Arrow because a plan may have millions."""
    names = batch["topic"].dictionary_encode()
    quoted = pa.array([json.dumps(name) for name in names.dictionary.to_pylist()], pa.string())
    starts, targets = (pc.binary_join(batch[name].cast(pa.list_(pa.string())), ",") for name in (start, target))
    pieces = (
        '{"topic":',
        quoted.take(names.indices),
        ',"partition":',
        batch["partition"].cast(pa.string()),
        ',"replicas":[',
        targets,
        '],"before":[',
        starts,
        "]}",
    )
    entries: list[bytes] = pc.binary_join_element_wise(*pieces, "").cast(pa.binary()).to_pylist()
    return entries
