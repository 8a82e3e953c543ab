"""Loads joined to their partitions: those of the cluster in this process, or those of a block in a worker."""

from __future__ import annotations

from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.inputs.columns import MEASURES
from spark_bridge.inputs.faults import Fault
from spark_bridge.inputs.index import Index, Loads
from spark_bridge.inputs.rows import Rows

CANONICAL: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("replicas", pa.list_(pa.int32())),
        ("leader", pa.int32()),
        *((name, pa.int64()) for name in MEASURES),
    ]
)
"""The partitions that planning starts from; a leader is one of the replicas, and null is unknown."""


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
        columns = [self.partitions[name] for name in ("topic", "partition", "replicas", "leader")]
        return pa.table([*columns, *self.loads.columns()], CANONICAL)

    def assigned(self) -> NDArray[np.int32]:
        """Return the ids of all brokers that have a replica."""
        ids: NDArray[np.int32] = np.unique(pc.list_flatten(self.partitions["replicas"]).to_numpy())
        return ids

    def unknown_loads(self) -> int:
        """Return the number of partitions without a known size."""
        return int(np.count_nonzero(~self.loads.known["bytes"]))
