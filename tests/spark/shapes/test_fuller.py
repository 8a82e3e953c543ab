"""The judge of the fullest broker: relieved brokers receive nothing, and large replicas fit only large brokers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import evolve

from spark_bridge.model.brokers import Brokers
from spark_bridge.model.goal import Goal, GoalKind
from tests.spark.kernel.instances import Instance
from tests.spark.shapes.fuller import fuller
from tests.spark.shapes.test_rules import cluster


def relieved(named: set[int], *lists: Sequence[int], size: int = 0) -> Instance:
    """Return brokers 0 to 4, the first of which is dead, and a goal that relieves some."""
    return cluster(Goal(GoalKind.RELIEVE, frozenset(named), racks=False), *lists, size=size, states={"b0": "dead"})


@pytest.mark.parametrize(
    ("after", "found"),
    [
        ([20, 20, 0], []),
        ([14, 13, 13], []),
        ([0, 40, 0], ["replicas"]),
        ([28, 6, 6], ["replicas"]),
    ],
)
def test_what_relieved_brokers_give_has_to_go_somewhere(after: list[int], found: list[str]) -> None:
    """Broker 1 is relieved as well and has nothing, so that the takers share what was its part."""
    named = {0, 1} if after[2] else {0, 1, 4}
    given = relieved(named, *[[0]] * 40)
    lists = [[b] for b, count in zip((2, 3, 4), after, strict=True) for _ in range(count)]
    assert [name for name, _ in fuller(given, lists)] == found


@pytest.mark.parametrize(
    ("after", "found"),
    [
        ([[1, 2], [1, 2], [1], [2]], []),
        ([[1, 2], [1, 2], [1], [1]], ["bytes"]),
    ],
)
def test_only_large_brokers_take_what_is_larger_than_the_shares_of_others(
    after: list[list[int]], found: list[str]
) -> None:
    given = relieved({0}, [0, 1], [0, 2], [0], [0], size=100)
    capacities = (4.0, 4.0, 4.0, 1.0, 1.0)
    rows = [evolve(b, capacity=c) for b, c in zip(given.brokers.rows, capacities, strict=True)]
    told = [name for name, _ in fuller(evolve(given, brokers=Brokers.of(rows)), after)]
    assert [name for name in told if name == "bytes"] == found
