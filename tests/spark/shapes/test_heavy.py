"""Large clusters are drawn as they should be: some partitions ignore racks, and brokers that pull more hold more."""

from __future__ import annotations

import numpy as np

from tests.spark.shapes.heavy import heavy


def test_the_replicas_of_a_large_cluster() -> None:
    given = heavy("zipf", "rebalance", 20_001, 58, seed=1)
    lists = np.array(given.replicas)
    assert lists.shape == (20_001, 3)
    assert all(len(set(row)) == 3 for row in given.replicas)
    # One in twenty ignores racks; of these, about a half share one by chance.
    racks = [{given.brokers.rows[b].rack for b in row} for row in given.replicas]
    crowded = sum(len(names) < 3 for names in racks) / len(racks)
    assert 0.01 < crowded < 0.05
    held = np.bincount(lists.ravel(), minlength=58)
    capacity = np.array([b.capacity for b in given.brokers.rows])
    assert held[capacity == 2].mean() > 1.3 * held[capacity == 1].mean()
    assert given == heavy("zipf", "rebalance", 20_001, 58, seed=1)


def test_brokers_to_add_are_empty() -> None:
    given = heavy("equal", "add-brokers", 1_000, 40, seed=2)
    held = {b for row in given.replicas for b in row}
    assert held == set(range(38))
