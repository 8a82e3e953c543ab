"""Cluster snapshots: reading what `klamm state dump` wrote, and saying where it is wrong.

Keys that planning does not need are ignored.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, TypeGuard

import orjson
from attrs import frozen

from spark_bridge.errors import PlanError

_INT32_MAX = 2**31 - 1


@frozen
class Broker:
    """A live broker; `rack` is None when it told none."""

    id: int
    rack: str | None


@frozen
class Partition:
    """A partition and its replicas, preferred leader first.

    Of a partition that is being reassigned `replicas` is the target: the assigned list without the removing replicas,
    that is what the assignment becomes (KIP-455), and what a new reassignment would replace.
    """

    topic: str
    partition: int
    replicas: tuple[int, ...]

    def __str__(self) -> str:
        """Return Kafka's short name of the partition."""
        return f"{self.topic}-{self.partition}"


@frozen
class Snapshot:
    """The live brokers and every partition of a cluster at one moment."""

    brokers: tuple[Broker, ...]
    partitions: tuple[Partition, ...]


def read_snapshot(path: Path) -> Snapshot:
    """Read the snapshot file.

    Raises:
        PlanError: The file is missing, not JSON, or not a snapshot; the line names the first wrong place.
    """
    try:
        document = orjson.loads(path.read_bytes())
    except OSError as error:
        raise PlanError(f"snapshot {path}: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise PlanError(f"snapshot {path}: not JSON: {error}") from None
    try:
        return parse_snapshot(document)
    except PlanError as error:
        raise PlanError(f"snapshot {path}: {error}") from None


def parse_snapshot(document: object) -> Snapshot:
    """Check a decoded snapshot and take from it what planning needs.

    Raises:
        PlanError: It is not a snapshot; the line names the first wrong place.
    """
    snapshot = Snapshot(
        brokers=tuple(_broker(row, f"brokers[{i}]") for i, row in enumerate(_rows(document, "brokers"))),
        partitions=tuple(_partition(row, f"partitions[{i}]") for i, row in enumerate(_rows(document, "partitions"))),
    )
    if repeated := [i for i, n in Counter(b.id for b in snapshot.brokers).items() if n > 1]:
        raise PlanError(f"brokers: id {repeated[0]} is there twice")
    if twins := [(t, p) for (t, p), n in Counter((p.topic, p.partition) for p in snapshot.partitions).items() if n > 1]:
        raise PlanError(f"partitions: {twins[0][0]}-{twins[0][1]} is there twice")
    return snapshot


def _rows(document: object, key: str) -> list[Any]:
    rows = document.get(key) if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise PlanError(f"no list {key!r} in it: give the output of `klamm state dump`")
    return rows


def _broker(row: object, where: str) -> Broker:
    fields = _object(row, where)
    broker_id, rack = fields.get("id"), fields.get("rack")
    if not _is_id(broker_id):
        raise PlanError(f"{where}: id must be a number of 0 or more, not {broker_id!r}")
    if rack is not None and not isinstance(rack, str):
        raise PlanError(f"{where}: rack must be a string or null, not {rack!r}")
    return Broker(broker_id, rack)


def _partition(row: object, where: str) -> Partition:
    fields = _object(row, where)
    topic, partition = fields.get("topic"), fields.get("partition")
    if not isinstance(topic, str) or not topic:
        raise PlanError(f"{where}: topic must be a name, not {topic!r}")
    if not _is_id(partition):
        raise PlanError(f"{where}: partition must be a number of 0 or more, not {partition!r}")
    where = f"{where} ({topic}-{partition})"
    removing = _ids(fields.get("removing_replicas", []), f"{where}: removing_replicas")
    target = tuple(b for b in _ids(fields.get("replicas"), f"{where}: replicas") if b not in removing)
    if not target:
        raise PlanError(f"{where}: it has no replicas")
    return Partition(topic, partition, target)


def _object(row: object, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise PlanError(f"{where}: must be an object, not {row!r}")
    return row


def _ids(value: object, where: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(map(_is_id, value)):
        raise PlanError(f"{where} must be a list of broker ids, not {value!r}")
    if len(set(value)) < len(value):
        raise PlanError(f"{where} names a broker twice: {value}")
    return tuple(value)


def _is_id(value: object) -> TypeGuard[int]:
    # bool is an int to Python, and `true` no id.
    return type(value) is int and 0 <= value <= _INT32_MAX
