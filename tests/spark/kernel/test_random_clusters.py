"""Cruise Control's checks of plans for its random clusters, applied to ours: a tenth of their partitions."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve
from numpy.typing import NDArray

from spark_bridge.generator.cluster import GeneratedCluster
from spark_bridge.generator.shapes import ClusterShape, shape_named
from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.brokers import Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.rules import violations
from tests.spark.planned import plan_blocks

SHAPES = [
    pytest.param(
        evolve(shape_named(name), topics=150, partitions=833, replication_factor=factor),
        marks=() if factor == usual else pytest.mark.soak,
    )
    for name, usual in (("uniform", None), ("linear", None), ("exponential", None), ("history", 5))
    for factor in (3, 5)
]
"""The placement of a history with one replication factor; all others in the soak."""

TOLERANCE = 0.05
shapes = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.placement}-{shape.replication_factor}")


def loads(replicas: NDArray[np.int32], block: Block, brokers: int) -> NDArray[np.int64]:
    """Return what brokers carry: (brokers, measures)."""
    there = replicas != NOBODY
    weights = np.broadcast_to(block.weights[:, None, :], (*replicas.shape, block.weights.shape[1]))[there]
    total = np.zeros((brokers, block.weights.shape[1]), np.int64)
    np.add.at(total, replicas[there], weights)
    return total


def unevenness(load: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for each measure how far the farthest broker is from the mean, as a part of that."""
    farthest: NDArray[np.float64] = np.abs(load / load.mean(axis=0) - 1).max(axis=0)
    return farthest


def planned(shape: ClusterShape, goal: Goal, *, dead: int = 0) -> tuple[Block, Brokers]:
    """Plan for a generated cluster of which the first brokers are dead; the plan keeps the hard rules."""
    cluster = GeneratedCluster(shape)
    states = [BrokerState.DEAD] * dead + [BrokerState.LIVE] * (len(cluster.brokers) - dead)
    brokers = Brokers.of(
        evolve(broker, state=state) for broker, state in zip(cluster.brokers.rows, states, strict=True)
    )
    (block,) = plan_blocks([cluster.block(0)], brokers, goal).blocks
    assert violations(block, brokers, goal) == []
    return block, brokers


@shapes
def test_rebalancing_meets_the_goal_or_comes_nearer_in_every_measure(shape: ClusterShape) -> None:
    block, brokers = planned(shape, Goal(GoalKind.REBALANCE, tolerance=TOLERANCE))
    before, after = (unevenness(loads(lists, block, len(brokers))) for lists in (block.before, block.after))
    assert ((after <= TOLERANCE + 0.01) | (after <= before)).all(), (before, after)


@shapes
def test_only_new_brokers_receive(shape: ClusterShape) -> None:
    added = frozenset(range(41, 45))
    block, brokers = planned(evolve(shape, new_brokers=4), Goal(GoalKind.ADD_BROKERS, added))
    is_new = (block.after != NOBODY) & ~(block.after[:, :, None] == block.before[:, None, :]).any(axis=2)
    assert set(brokers.ids[block.after[is_new]].tolist()) == added
    held = loads(block.after, block, len(brokers))
    assert held[-4:, 0].min() > 0.9 * held[:, 0].mean()


@shapes
def test_everything_leaves_dead_brokers(shape: ClusterShape) -> None:
    block, brokers = planned(shape, Goal(GoalKind.REPAIR_RACKS, dead_is_gone=True), dead=2)
    assert loads(block.after, block, len(brokers))[:2, 0].tolist() == [0, 0]


@shapes
@pytest.mark.parametrize("kind", [GoalKind.REBALANCE, GoalKind.REPAIR_RACKS])
def test_nothing_leaves_brokers_that_do_not_serve(shape: ClusterShape, kind: GoalKind) -> None:
    block, _ = planned(shape, Goal(kind), dead=2)
    for broker in (0, 1):
        assert ((block.before == broker).any(axis=1) == (block.after == broker).any(axis=1)).all()
