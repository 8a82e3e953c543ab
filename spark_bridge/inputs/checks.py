"""The checks of rows: from a raw table to good rows and the faults of the others. Only bad rows are looped over.

Checks that need more than one row (duplicates, partitions missing from the snapshot) happen where all rows are joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.inputs.columns import MEASURES, ROW, UNKNOWN, WRONG, quoted
from spark_bridge.inputs.faults import Bad, Fault

PARTITIONS: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        ("replicas", pa.list_(pa.int32())),
        ("leader", pa.int32()),
        ("min_insync_replicas", pa.int32()),
        (ROW, pa.int64()),
    ]
)
"""Good rows of a snapshot: `replicas` is the target of one being reassigned, `leader` one of them or null.

`topic_id` is null if it is not known; min.insync.replicas is null if it is unknown, or not a number that can be met or
missed.
"""

LOADS: Final = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), *((name, pa.int64()) for name in MEASURES), (ROW, pa.int64())]
)
"""Good rows of loads: bytes and bytes per second, null if unknown."""

_INT32_MAX: Final = 2**31 - 1
_LEGAL_NAME: Final = r"^[a-zA-Z0-9._-]{1,249}$"
_TOO_MUCH: Final = 2.0**53
"""Floats are exact up to here, and no partition has eight petabytes."""

Mask = NDArray[np.bool_]


@frozen
class Checked:
    """The good rows, in their original order, and the faults of the others."""

    good: pa.Table
    bad: tuple[Bad, ...]


def check_partitions(raw: pa.Table) -> Checked:
    """Check rows of a snapshot, a raw table of `PARTITIONS_TABLE`; the good ones come as `PARTITIONS`.

    If a partition is being reassigned, its removing replicas are omitted: the others are its target (KIP-455), which a
    new reassignment would replace.
    """
    raw = raw.combine_chunks()
    replicas = _Lists.of(raw["replicas"])
    target = replicas.without(_Lists.of(raw["removing_replicas"]))
    leader = _numbers(raw["leader"], -1)
    # A row is reported by its first fault, so what makes other faults meaningless comes first.
    faults = [
        *_common_faults(raw),
        (Fault.TOPIC_ID, _has_bad_id(raw["topic_id"])),
        (Fault.BROKER, replicas.has_no_id() | (leader < -1) | (leader > _INT32_MAX)),
        (Fault.TWICE_IN_LIST, replicas.has_twins()),
        (Fault.NO_REPLICAS, target.lengths() == 0),
    ]
    good, bad = _sorted_out(raw, faults)
    led = target.contains(leader)
    led_by = pa.array(leader, mask=~led)
    least = _numbers(raw["min_insync_replicas"], 0)
    least_isr = pa.array(least, mask=(least < 1) | (least > _INT32_MAX))
    columns = [raw["topic"], raw["partition"], raw["topic_id"], target.array(), led_by, least_isr, raw[ROW]]
    table = pa.table(columns, names=PARTITIONS.names)
    return Checked((table.filter(pa.array(good)) if bad else table).cast(PARTITIONS), bad)


def check_loads(raw: pa.Table) -> Checked:
    """Check rows of loads, a raw table of `LOADS_TABLE`; the good ones come as `LOADS`, rates rounded."""
    raw = raw.combine_chunks()
    wrong: Mask = np.zeros(len(raw), np.bool_)
    for name in MEASURES:
        # Null is allowed but NaN is not, so only comparisons that are true for good numbers are used.
        values = _numbers(raw[name], 0)
        wrong |= ~((values >= 0) & (values < _TOO_MUCH))
    good, bad = _sorted_out(raw, [*_common_faults(raw), (Fault.NUMBER, wrong)])
    kept = raw.filter(pa.array(good)) if bad else raw
    measures = [pc.round(kept[name]) for name in MEASURES]
    columns = [kept["topic"], kept["partition"], *measures, kept[ROW]]
    return Checked(pa.table(columns, names=LOADS.names).cast(LOADS), bad)


def _common_faults(raw: pa.Table) -> list[tuple[Fault, Mask]]:
    topics = raw["topic"].combine_chunks().dictionary_encode()
    names = topics.dictionary
    legal = pc.and_not(pc.match_substring_regex(names, _LEGAL_NAME), pc.is_in(names, pa.array([".", ".."])))
    known = pc.fill_null(pc.take(legal, topics.indices), fill_value=False)
    partition = _numbers(raw["partition"], -1)
    return [
        (Fault.COLUMN, _mask(pc.is_valid(raw[UNKNOWN]))),
        (Fault.SHAPE, _mask(pc.is_valid(raw[WRONG]))),
        (Fault.TOPIC, ~_mask(known)),
        (Fault.PARTITION, (partition < 0) | (partition > _INT32_MAX)),
    ]


def _has_bad_id(ids: pa.ChunkedArray) -> Mask:
    found = ids.combine_chunks().dictionary_encode()
    legal = pc.take(pc.match_substring_regex(found.dictionary, _LEGAL_NAME), found.indices)
    return ~_mask(pc.fill_null(legal, fill_value=True))


def _sorted_out(raw: pa.Table, faults: list[tuple[Fault, Mask]]) -> tuple[Mask, tuple[Bad, ...]]:
    """Return which rows are good, and the others by their first fault."""
    good: Mask = np.ones(len(raw), np.bool_)
    bad = []
    for fault, has in faults:
        newly = np.flatnonzero(has & good)
        if len(newly):
            rows = raw[ROW].to_numpy()[newly]
            first = int(newly[rows.argmin()])
            bad.append(Bad(int(rows.min()), _detail(fault, raw.slice(first, 1).to_pylist()[0]), fault, len(newly)))
        good &= ~has
    return good, tuple(bad)


def _detail(fault: Fault, row: dict[str, Any]) -> str:
    """Return what is wrong with a row, beginning with its name unless that is the fault."""
    name = f"{row['topic']}-{row['partition']}"
    match fault:
        case Fault.COLUMN:
            return str(row[UNKNOWN])
        case Fault.SHAPE:
            return str(row[WRONG])
        case Fault.TOPIC:
            return f"topic must be up to 249 letters, digits, '.', '_' and '-', not {quoted(row['topic'])}"
        case Fault.PARTITION:
            return f"partition of {row['topic']} must be a number from 0 to {_INT32_MAX}, not {row['partition']}"
        case Fault.TOPIC_ID:
            form = "up to 249 letters, digits, '.', '_' and '-'"
            return f"{name}: topic_id must be {form}, not {quoted(row['topic_id'])}"
        case Fault.BROKER:
            return f"{name}: a broker id must be from 0 to {_INT32_MAX}: {_ids(row)}, leader {row['leader']}"
        case Fault.TWICE_IN_LIST:
            return f"{name}: duplicate broker: {_ids(row)}"
        case Fault.NO_REPLICAS:
            return f"{name}: it has no replicas"
        case _:
            return f"{name}: a size or rate must be a number from 0 to 2^53: {', '.join(_measures(row))}"


def _ids(row: dict[str, Any]) -> str:
    return f"replicas {quoted(row['replicas'])}"


def _measures(row: dict[str, Any]) -> Iterator[str]:
    for name in MEASURES:
        if row[name] is not None:
            yield f"{name} {row[name]:.15g}"


def _numbers(column: pa.ChunkedArray, otherwise: float) -> NDArray[Any]:
    """Return a column of numbers, with null replaced by `otherwise`."""
    filled: NDArray[Any] = pc.fill_null(column, pa.scalar(otherwise, column.type)).to_numpy()
    return filled


def _mask(column: pa.Array) -> Mask:
    array: Mask = column.to_numpy(zero_copy_only=False)
    return array


@frozen(eq=False)
class _Lists:
    """Lists of broker ids, as one flat array and the row of each member; null counts as an empty list."""

    rows: int
    flat: NDArray[np.int64]
    row: NDArray[np.int64]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> _Lists:
        lists = column.combine_chunks()
        return cls(len(lists), _numbers(pc.list_flatten(lists), -1), pc.list_parent_indices(lists).to_numpy())

    def without(self, others: _Lists) -> _Lists:
        ids = (others.flat >= 0) & (others.flat <= _INT32_MAX)
        if not ids.any():
            return self
        kept = ~np.isin(self._keys(), others._keys()[ids])
        return _Lists(self.rows, self.flat[kept], self.row[kept])

    def _keys(self) -> NDArray[np.int64]:
        """Return row and id as one number; meaningless for a value that is not an id, whose row is rejected anyway."""
        return self.row * 2**31 + self.flat

    def lengths(self) -> NDArray[np.int64]:
        return np.bincount(self.row, minlength=self.rows).astype(np.int64)

    def has_no_id(self) -> Mask:
        return self._rows_where((self.flat < 0) | (self.flat > _INT32_MAX))

    def has_twins(self) -> Mask:
        order = np.argsort(self._keys(), kind="stable")
        ids, rows = self.flat[order], self.row[order]
        found: Mask = np.zeros(self.rows, np.bool_)
        found[rows[1:][(ids[1:] == ids[:-1]) & (rows[1:] == rows[:-1])]] = True
        return found

    def contains(self, value: NDArray[np.int64]) -> Mask:
        return self._rows_where(self.flat == value[self.row])

    def array(self) -> pa.Array:
        ends = np.cumsum(np.append(0, self.lengths()))
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(self.flat))

    def _rows_where(self, member: Mask) -> Mask:
        found: Mask = np.zeros(self.rows, np.bool_)
        found[self.row[member]] = True
        return found
