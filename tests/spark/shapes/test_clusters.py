"""The random clusters have all the promised shapes, and each seed gives one cluster."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_bridge.model.brokers import BrokerState
from spark_bridge.model.goal import GoalKind, LeaderScope
from tests.spark.kernel.instances import Instance
from tests.spark.shapes.clusters import shaped

SEEDS = range(400)


@pytest.fixture(scope="module")
def instances() -> list[Instance]:
    return [shaped(seed) for seed in SEEDS]


def has_state(*states: BrokerState) -> Callable[[Instance], bool]:
    return lambda i: any(b.state in states for b in i.brokers.rows)


@pytest.mark.parametrize(
    "is_so",
    [
        lambda i: len(i.names) > 1_000 and len(i.brokers) > 30,
        lambda i: len(i.names) < 5,
        lambda i: not any(i.size),
        lambda i: 0 < sum(map(bool, i.size)) < 0.3 * len(i.size),
        lambda i: 2 * max(i.size) > sum(i.size) > 0,
        lambda i: not any(i.bytes_in) and any(i.size),
        lambda i: {len(r) for r in i.replicas} >= {1, 2, 3, 4, 5},
        lambda i: max(map(len, i.replicas)) == 6,
        lambda i: {b.rack is None for b in i.brokers.rows} == {True, False},
        lambda i: {b.capacity for b in i.brokers.rows} == {1.0, 4.0},
        lambda i: any(b.disk is not None for b in i.brokers.rows),
        lambda i: any(topic.isascii() for topic, _ in i.names) and any(not topic.isascii() for topic, _ in i.names),
        lambda i: any(len(topic) > 240 for topic, _ in i.names),
        lambda i: max(b.id for b in i.brokers.rows) > 1_000,
        has_state(BrokerState.DEAD),
        has_state(BrokerState.DRAINING),
        has_state(BrokerState.EXCLUDED),
        lambda i: bool(i.goal.exclude),
        lambda i: bool(i.goal.topics),
        lambda i: not i.goal.racks,
        lambda i: i.goal.leaders is LeaderScope.NONE,
    ],
)
def test_some_are_so(instances: list[Instance], is_so: Callable[[Instance], bool]) -> None:
    assert sum(map(is_so, instances)) >= 3


def test_all_kinds_of_goals_take_turns(instances: list[Instance]) -> None:
    assert {i.goal.kind for i in instances} == set(GoalKind)


def test_a_seed_stands_for_one_cluster(instances: list[Instance]) -> None:
    assert [shaped(seed) for seed in SEEDS[:50]] == instances[:50]


def test_lists_name_brokers_that_there_are_once(instances: list[Instance]) -> None:
    for given in instances:
        assert all(len(set(r)) == len(r) and set(r) <= set(range(len(given.brokers))) for r in given.replicas)
