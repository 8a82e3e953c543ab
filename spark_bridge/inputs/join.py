"""Loads joined to their partitions: those of the cluster in this process, or those of a block in a worker."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.inputs.columns import MEASURES
from spark_bridge.inputs.faults import Fault
from spark_bridge.inputs.rows import Rows

CANONICAL: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        ("replicas", pa.list_(pa.int32())),
        ("leader", pa.int32()),
        ("min_insync_replicas", pa.int32()),
        *((name, pa.int64()) for name in MEASURES),
    ]
)
"""The partitions that planning starts from; a leader is one of the replicas, and null is unknown, as for the
id of a topic."""


@frozen(eq=False)
class Index:
    """The names of partitions, in order.

    Attributes:
        topics: The topics, in order.
        keys: (P) one number for each partition: the index of its topic in the high bits, its own number below;
            ascending.
    """

    topics: pa.Array
    keys: NDArray[np.int64]

    @classmethod
    def of(cls, rows: pa.Table) -> tuple[Index, NDArray[np.int64], NDArray[np.int64]]:
        """Return the index of rows with `topic` and `partition`.

        Returns:
            The index, the positions of its partitions in `rows`, and the positions of duplicate rows, ascending.
        """
        topics = pc.unique(rows["topic"]).sort()
        keys = _keys(topics, rows)
        order = np.argsort(keys, kind="stable")
        repeated: NDArray[np.bool_] = np.zeros(len(order), np.bool_)
        repeated[1:] = keys[order][1:] == keys[order][:-1]
        return cls(topics, keys[order][~repeated]), order[~repeated], np.sort(order[repeated])

    def find(self, rows: pa.Table) -> NDArray[np.int64]:
        """Return the position of each row's partition in the index, -1 if it is missing."""
        keys = _keys(self.topics, rows)
        places = np.minimum(np.searchsorted(self.keys, keys), max(0, len(self.keys) - 1))
        found = self.keys[places] == keys if len(self.keys) else np.zeros(len(keys), np.bool_)
        return np.where(found, places, -1)


def _keys(topics: pa.Array, rows: pa.Table) -> NDArray[np.int64]:
    place = pc.fill_null(pc.index_in(rows["topic"], topics), -1).to_numpy().astype(np.int64)
    numbers: NDArray[np.int64] = rows["partition"].to_numpy().astype(np.int64)
    return np.where(place < 0, -1, place * 2**31 + numbers)


class Loads:
    """The known loads of partitions.

    Attributes:
        values: For each of `MEASURES`, (P) numbers, 0 if unknown.
        known: For each of `MEASURES`, (P) whether it is known.
    """

    def __init__(self, partitions: int) -> None:
        self.values = {name: np.zeros(partitions, np.int64) for name in MEASURES}
        self.known: dict[str, NDArray[np.bool_]] = {name: np.zeros(partitions, np.bool_) for name in MEASURES}

    def add(self, places: NDArray[np.int64], rows: pa.Table) -> None:
        """Add the rows of one input, given the position of each row's partition.

        Their values replace earlier ones; of several rows for a partition, the largest value counts.
        """
        for name in MEASURES:
            says = pc.is_valid(rows[name]).to_numpy(zero_copy_only=False)
            about = places[says]
            self.values[name][about] = 0
            np.maximum.at(self.values[name], about, rows[name].drop_null().to_numpy())
            self.known[name][about] = True

    def columns(self) -> list[Any]:
        """Return the measures as Arrow arrays, null if unknown."""
        return [pa.array(self.values[name], mask=~self.known[name]) for name in MEASURES]


@frozen(eq=False)
class Joined:
    """Partitions without duplicates, and their known loads.

    Attributes:
        partitions: Rows of `PARTITIONS`, ordered by topic and partition.
        index: Their names.
        loads: Their loads.
    """

    partitions: pa.Table
    index: Index
    loads: Loads

    @classmethod
    def of(cls, snapshot: Rows) -> Self:
        """Return the partitions of a snapshot, and mark duplicate rows as bad."""
        index, order, repeated = Index.of(snapshot.table)
        snapshot.blame(repeated, Fault.REPEATED)
        return cls(snapshot.table.take(order), index, Loads(len(order)))

    def add(self, rows: Rows, *, one_each: bool) -> None:
        """Add the loads of one input, and mark rows for partitions that are not in the snapshot as bad.

        Args:
            rows: Rows of `LOADS`.
            one_each: Whether a partition may have only one row; if so, further rows are marked as bad.
        """
        places = self.index.find(rows.table)
        rows.blame(np.flatnonzero(places < 0), Fault.UNKNOWN)
        known = np.flatnonzero(places >= 0)
        if one_each:
            first = known[np.unique(places[known], return_index=True)[1]]
            rows.blame(np.setdiff1d(known, first, assume_unique=True), Fault.REPEATED)
            known = first
        self.loads.add(places[known], rows.table.take(known))

    def table(self) -> pa.Table:
        """Return rows of `CANONICAL`."""
        names = ("topic", "partition", "topic_id", "replicas", "leader", "min_insync_replicas")
        columns = [self.partitions[name] for name in names]
        return pa.table([*columns, *self.loads.columns()], CANONICAL)

    def assigned(self) -> NDArray[np.int32]:
        """Return the ids of all brokers that have a replica."""
        ids: NDArray[np.int32] = np.unique(pc.list_flatten(self.partitions["replicas"]).to_numpy())
        return ids

    def unknown_loads(self) -> int:
        """Return the number of partitions without a known size."""
        return int(np.count_nonzero(~self.loads.known["bytes"]))
