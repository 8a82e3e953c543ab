"""The outcome of a plan: its summary, its files, and every replica list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from spark_bridge.engines.engine import Engine
from spark_bridge.generator.cluster import GeneratedCluster
from spark_bridge.generator.files import rows_of
from spark_bridge.generator.shapes import ClusterShape
from spark_bridge.model.block import Block
from spark_bridge.model.brokers import Brokers
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.planning import plan_cluster, write
from spark_bridge.summing import summarize

GOALS = (
    Goal(GoalKind.REBALANCE, tolerance=0.1),
    Goal(GoalKind.ADD_BROKERS, frozenset({13, 14})),
    Goal(GoalKind.REMOVE_BROKERS, frozenset({3, 7})),
    Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=4, topics=("topic-1*",)),
    Goal(GoalKind.RELIEVE, frozenset({1})),
    Goal(GoalKind.REPAIR_RACKS, exclude=frozenset({2})),
    Goal(GoalKind.LEADERS, topics=("topic-1*",), exclude=frozenset({2})),
)
"""One of each kind, for clusters of `shape`."""


def shape(partitions: int, seed: int = 5) -> ClusterShape:
    """Return what twelve brokers and two new ones are made of: those that came late have little."""
    return ClusterShape(brokers=12, racks=3, topics=40, partitions=partitions, new_brokers=2, seed=seed)


def table_of(cluster: GeneratedCluster) -> pa.Table:
    """Return a cluster's partitions as the rows of planning's inputs."""
    return pa.Table.from_batches([rows_of(block, cluster.brokers) for block in cluster.blocks()])


def crowded(rows: pa.Table, brokers: Brokers) -> pa.Table:
    """Return rows in which one partition of ten has two replicas in one rack, so that there are racks to repair."""
    racks = {broker.id: broker.rack for broker in brokers.rows[:12]}
    lists = rows["replicas"].to_pylist()
    for row in range(0, len(lists), 10):
        first, *rest = lists[row]
        neighbour = next(b for b, rack in racks.items() if rack == racks[first] and b not in lists[row])
        lists[row] = [first, neighbour, *rest[1:]]
    return rows.set_column(rows.column_names.index("replicas"), "replicas", pa.array(lists, pa.list_(pa.int32())))


@frozen
class EngineOutcome:
    """A plan: its summary as a document but for the engine's name, and its files' bytes by name."""

    summary: dict[str, Any]
    files: dict[str, bytes]


def outcome(engine: Engine, brokers: Brokers, goal: Goal, folder: Path) -> EngineOutcome:
    """Plan, sum up and write."""
    planned = plan_cluster(engine, brokers, goal, lambda _: None)
    summary = summarize(planned, {}, 0).to_document()
    assert summary.pop("engine") == engine.name
    folder.mkdir()
    write(planned, folder, "a-cluster")
    return EngineOutcome(summary, {path.name: path.read_bytes() for path in sorted(folder.iterdir())})


def same_blocks(some: list[Block], others: list[Block]) -> bool:
    """Return whether blocks hold the same partitions with the same lists, in the same order."""
    return len(some) == len(others) and all(
        one.topics == other.topics
        and all(
            np.array_equal(getattr(one, name), getattr(other, name))
            for name in ("topic", "partition", "before", "after", "weights", "bytes_out", "tie")
        )
        for one, other in zip(some, others, strict=True)
    )
