"""The judge of refusals compared with exhaustive search."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from random import Random

import pytest

from spark_bridge.model.brokers import BrokerState
from spark_bridge.model.goal import GoalKind
from tests.spark.kernel.instances import Instance
from tests.spark.shapes.clusters import drawn
from tests.spark.shapes.feasible import feasible
from tests.spark.shapes.rules import Rules, broken_rules


def plans(given: Instance) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield every plan in which each partition keeps the rules; kept replicas stay in their order."""
    rules = Rules.of(given)
    choices = []
    for n, before in enumerate(given.replicas):
        sets = combinations(range(len(given.brokers)), rules.wanted(given.names[n][0], before))
        lists = [tuple(sorted(s, key=lambda b: before.index(b) if b in before else 99)) for s in sets]
        choices.append([row for row in lists if not _breaks(given, n, row)])
    yield from product(*choices)


def _breaks(given: Instance, row: int, after: tuple[int, ...]) -> bool:
    topic, number = given.names[row]
    lists = [after if n == row else before for n, before in enumerate(given.replicas)]
    found = broken_rules(given, lists)
    return any(f": {topic}-{number} (" in line for line in found)


def small(seed: int) -> Instance:
    rng = Random(seed)
    return drawn(rng, seed, rng.randint(1, 4), rng.randint(3, 5))


def test_the_judge_says_what_trying_everything_says() -> None:
    told = []
    for seed in range(600):
        given = small(seed)
        named_ill = given.goal.kind is GoalKind.ADD_BROKERS and any(
            b.state is not BrokerState.LIVE for b in given.brokers.rows if b.id in given.goal.brokers
        )
        if named_ill:
            continue
        exists = any(not broken_rules(given, lists) for lists in plans(given))
        assert feasible(given) is exists, seed
        told.append(exists)
    assert told.count(False) > 50


@pytest.mark.parametrize("seed", [1, 8])
def test_who_is_ill_cannot_be_added(seed: int) -> None:
    given = small(seed)
    assert given.goal.kind is GoalKind.ADD_BROKERS
    assert isinstance(feasible(given), bool)
