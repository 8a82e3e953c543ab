"""Reading a cluster in this process, with Arrow and NumPy: a million partitions in seconds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
from attrs import frozen

from spark_bridge.errors import PlanError
from spark_bridge.inputs.brokers import all_brokers
from spark_bridge.inputs.checks import LOADS, PARTITIONS, check_loads, check_partitions
from spark_bridge.inputs.files import broker_parts, load_parts, open_snapshot
from spark_bridge.inputs.join import Joined
from spark_bridge.inputs.rows import Rows
from spark_bridge.inputs.sources import Source, Sources
from spark_bridge.model.brokers import Brokers


@frozen
class ClusterInputs:
    """The inputs of planning, joined.

    Attributes:
        brokers: All brokers.
        partitions: Rows of `join.CANONICAL`, ordered by topic and partition, without duplicates.
        set_aside: The number of input rows that were set aside, by fault.
        unknown_loads: The number of partitions without a known size.
        cluster_id: The id of the cluster, None if it is not known.
    """

    brokers: Brokers
    partitions: pa.Table
    set_aside: dict[str, int]
    unknown_loads: int
    cluster_id: str | None = None


def read_cluster(sources: Sources) -> ClusterInputs:
    """Read all sources and join the loads to the partitions.

    Raises:
        PlanError: A file cannot be read or has the wrong content, or a bad row must be rejected.
    """
    aside: Counter[str] = Counter()
    snapshot = open_snapshot(_here(sources.snapshot))
    rows = Rows.of(snapshot.parts, check_partitions, PARTITIONS)
    joined = Joined.of(rows)
    rows.settle(sources.on_bad_rows, aside)
    added = None if sources.brokers is None else broker_parts(_here(sources.brokers))
    brokers = all_brokers(snapshot.broker_parts(), added, joined.assigned().tolist())
    for path in sources.loads:
        parts = load_parts(_here(path))
        rows = Rows.of(parts, check_loads, LOADS)
        joined.add(rows, one_each=not parts[0].of_replicas)
        rows.settle(sources.on_bad_rows, aside)
    return ClusterInputs(brokers, joined.table(), dict(aside), joined.unknown_loads(), snapshot.cluster_id)


def _here(source: Source) -> Path:
    """Return an input that this process can reach.

    Raises:
        PlanError: Only Spark can reach it.
    """
    if isinstance(source, Path):
        return source
    raise PlanError(f"{source}: only Spark reads {source.scheme}:// paths: plan with --engine spark")
