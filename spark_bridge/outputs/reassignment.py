"""Kafka's reassignment JSON, as used by `kafka-reassign-partitions`, in documents of limited size.

Besides Kafka's fields, each partition has `before`, its replicas when the plan was made, and where they are known
`topic_id`, and the document `cluster_id`. `klamm reassignment execute` rejects a plan whose partitions no longer have
these replicas, or that was made on another cluster or for topics that were created again; Kafka's tools ignore the
fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from spark_bridge.errors import PlanError

LIMIT: Final = 900_000
"""The most bytes of a document: Kafka's tool writes it to one znode, and ZooKeeper accepts 1 MB."""

_TAIL: Final = b"\n]}\n"
_BETWEEN: Final = b",\n"


@frozen
class StepFiles:
    """The documents of some partitions of a plan: the one that moves them, and the one that undoes it."""

    plan: bytes
    rollback: bytes


@frozen
class Ids:
    """The ids in a plan, as far as they are known: of the cluster, and of topics by name."""

    cluster: str | None = None
    topics: Mapping[str, str | None] = field(factory=dict)

    @property
    def head(self) -> bytes:
        """The beginning of a document."""
        named = "" if self.cluster is None else f'"cluster_id":{json.dumps(self.cluster)},'
        return f'{{"version":1,{named}"partitions":[\n'.encode()


_NO_IDS: Final = Ids()


def steps(batches: Iterable[pa.RecordBatch], limit: int = LIMIT, ids: Ids = _NO_IDS) -> Iterator[StepFiles]:
    """Yield the rows of a plan as documents of at most `limit` bytes, with one partition per line.

    The rollback of a step names the same partitions as its plan, so that each file can be undone by itself.

    Raises:
        PlanError: A single partition does not fit.
    """
    room = limit - len(ids.head) - len(_TAIL) + len(_BETWEEN)
    lines: list[tuple[bytes, bytes]] = []
    size = 0
    for pair in _lines(batches, ids):
        needed = max(map(len, pair)) + len(_BETWEEN)
        if needed > room:
            text = pair[0].decode()
            raise PlanError(f"files of {limit:,} bytes cannot hold {text}: allow {limit + needed - room:,} or more")
        if size + needed > room:
            yield _step(lines, ids)
            lines, size = [], 0
        lines.append(pair)
        size += needed
    if lines:
        yield _step(lines, ids)


def _step(lines: list[tuple[bytes, bytes]], ids: Ids) -> StepFiles:
    plan, rollback = (ids.head + _BETWEEN.join(column) + _TAIL for column in zip(*lines, strict=True))
    return StepFiles(plan, rollback)


def _lines(batches: Iterable[pa.RecordBatch], ids: Ids) -> Iterator[tuple[bytes, bytes]]:
    """Yield each partition's entry in the plan and in the rollback."""
    for batch in batches:
        yield from zip(_entries(batch, "before", "after", ids), _entries(batch, "after", "before", ids), strict=True)


def _entries(batch: pa.RecordBatch, start: str, target: str, ids: Ids) -> list[bytes]:
    """Return JSON objects, composed by Arrow because a plan may have millions."""
    names = batch["topic"].dictionary_encode()
    topics = names.dictionary.to_pylist()
    quoted = pa.array([json.dumps(name) for name in topics], pa.string())
    ends = pa.array([_end(ids.topics.get(name)) for name in topics], pa.string())
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
        ends.take(names.indices),
    )
    entries: list[bytes] = pc.binary_join_element_wise(*pieces, "").cast(pa.binary()).to_pylist()
    return entries


def _end(topic_id: str | None) -> str:
    return "]}" if topic_id is None else f'],"topic_id":{json.dumps(topic_id)}}}'
