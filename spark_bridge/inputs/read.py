"""Reading a cluster in this process, with Arrow and NumPy: a million partitions in seconds."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.inputs.brokers import all_brokers
from spark_bridge.inputs.checks import LOADS, PARTITIONS, check_loads, check_partitions
from spark_bridge.inputs.columns import MEASURES
from spark_bridge.inputs.faults import Fault
from spark_bridge.inputs.files import broker_parts, load_parts, open_snapshot
from spark_bridge.inputs.index import Index, Loads
from spark_bridge.inputs.rows import Rows
from spark_bridge.inputs.sources import Sources
from spark_bridge.model.brokers import Brokers

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


@frozen
class ClusterInputs:
    """A cluster as planning takes it in.

    Attributes:
        brokers: All of them.
        partitions: Rows of `CANONICAL`, ordered by topic and partition, each there once.
        set_aside: How many rows of the inputs were left out, by what was wrong with them.
        unknown_loads: How many partitions have no known size.
    """

    brokers: Brokers
    partitions: pa.Table
    set_aside: dict[str, int]
    unknown_loads: int


def read_cluster(sources: Sources) -> ClusterInputs:
    """Read all of the sources and join the loads to the partitions.

    Raises:
        PlanError: A file cannot be read or is not what it should be, or a row is bad and is to be refused.
    """
    aside: Counter[str] = Counter()
    snapshot = open_snapshot(sources.snapshot)
    rows = Rows.of(snapshot.parts, check_partitions, PARTITIONS)
    index, order, repeated = Index.of(rows.table)
    rows.blame(repeated, Fault.REPEATED)
    rows.settle(sources.on_bad_rows, aside)
    partitions = rows.table.take(order)
    added = None if sources.brokers is None else broker_parts(sources.brokers)
    brokers = all_brokers(snapshot.broker_parts(), added, _ids(partitions))
    loads = Loads(len(partitions))
    for path in sources.loads:
        parts = load_parts(path)
        rows = Rows.of(parts, check_loads, LOADS)
        known = _known(rows, index.find(rows.table), one_each=not parts[0].of_replicas)
        rows.settle(sources.on_bad_rows, aside)
        found = rows.table.take(known)
        loads.add(index.find(found), found)
    columns = [*(partitions[name] for name in ("topic", "partition", "replicas", "leader")), *loads.columns()]
    unknown = int(np.count_nonzero(~loads.known["bytes"]))
    return ClusterInputs(brokers, pa.table(columns, CANONICAL), dict(aside), unknown)


def _ids(partitions: pa.Table) -> list[int]:
    """Return the ids of all brokers that have a replica."""
    ids: list[int] = np.unique(pc.list_flatten(partitions["replicas"]).to_numpy()).tolist()
    return ids


def _known(rows: Rows, places: NDArray[np.int64], *, one_each: bool) -> NDArray[np.int64]:
    """Return which rows are about partitions of the snapshot, and find fault with the others.

    Args:
        rows: Good rows of loads.
        places: Of each its partition's place in the snapshot, -1 for those that it lacks.
        one_each: Whether a partition may have one row only.
    """
    rows.blame(np.flatnonzero(places < 0), Fault.UNKNOWN)
    known = np.flatnonzero(places >= 0)
    if one_each:
        first = known[np.unique(places[known], return_index=True)[1]]
        rows.blame(np.setdiff1d(known, first, assume_unique=True), Fault.REPEATED)
        return first
    return known
