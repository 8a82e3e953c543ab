"""The exact solver compared with exhaustive search."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import inf
from random import Random

import numpy as np
import pytest

from spark_bridge.model.block import Block, padded
from spark_bridge.model.brokers import Broker, Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.rules import disk_tally, disk_violations, violations
from tests.spark.kernel.exact import Loads, Problem, eased_bound, fullest, least_bytes, least_excess, least_fullest

Lists = tuple[frozenset[int], ...]


def cluster(rng: Random) -> tuple[Brokers, Block]:
    """Draw four or five brokers and up to four partitions."""
    states = [rng.choice((*[BrokerState.LIVE] * 4, BrokerState.EXCLUDED, BrokerState.DRAINING)) for _ in range(2)]
    rows = [
        Broker(n, rng.choice((None, "a", "a", "b")), disk=rng.choice((None, None, 8, 4)), state=state)
        for n, state in enumerate([*[BrokerState.LIVE] * rng.randint(2, 3), *states])
    ]
    lists = [rng.sample(range(len(rows)), rng.randint(1, 2)) for _ in range(rng.randint(2, 4))]
    count = len(lists)
    sizes, rates = ([rng.randint(0, 9) for _ in lists] for _ in range(2))
    return Brokers.of(rows), Block.of([("t", n) for n in range(count)], lists, sizes, rates, [0] * count)


def goal_of(rng: Random) -> Goal:
    kind = rng.choice(list(GoalKind))
    if kind is GoalKind.SET_REPLICATION_FACTOR:
        return Goal(kind, replication_factor=rng.randint(1, 2))
    names_some = kind in {GoalKind.ADD_BROKERS, GoalKind.REMOVE_BROKERS, GoalKind.RELIEVE}
    return Goal(kind, frozenset({rng.randrange(1 if kind is GoalKind.REMOVE_BROKERS else 2)} if names_some else ()))


def legal_plans(block: Block, brokers: Brokers, goal: Goal, factors: list[int]) -> Iterator[Lists]:
    """Yield every plan that the checker lets pass."""
    sets = [list(combinations(range(len(brokers)), factor)) for factor in factors]
    fine = [
        [s for s in choices if not any(line.startswith(f"t-{p}:") for line in broken_with(block, brokers, goal, p, s))]
        for p, choices in enumerate(sets)
    ]
    for lists in product(*fine):
        if not disk_violations(brokers, disk_tally(block.with_after(padded(lists)), brokers)):
            yield tuple(map(frozenset, lists))


def broken_with(block: Block, brokers: Brokers, goal: Goal, row: int, brokers_of_row: tuple[int, ...]) -> list[str]:
    lists: list[tuple[int, ...]] = [(0,)] * len(block)
    lists[row] = brokers_of_row
    return violations(block.with_after(padded(lists)), brokers, goal, counts_rests=False)


def bounds(rng: Random, brokers: Brokers) -> tuple[Loads, Loads]:
    lo = np.array([[-inf, rng.choice((-inf, -inf, 3)), rng.choice((-inf, -inf, 2))] for _ in brokers.rows])
    hi = np.array([[rng.choice((inf, inf, 2)), rng.choice((inf, inf, 14)), inf] for _ in brokers.rows])
    return lo, hi


def excess_of(loads: Loads, lo: Loads, hi: Loads, scale: Loads) -> float:
    return float(np.max(np.maximum(np.maximum(lo - loads, loads - hi), 0) / scale))


@pytest.mark.parametrize("seed", range(150))
def test_both_stages_find_what_trying_everything_finds(seed: int) -> None:
    rng = Random(seed)
    brokers, block = cluster(rng)
    goal = goal_of(rng)
    lo, hi = bounds(rng, brokers)
    try:
        problem = Problem.of(block, brokers, goal)
    except ValueError:
        return
    scale = np.full(lo.shape, 7.0)
    plans = list(legal_plans(block, brokers, goal, [p.wanted for p in problem.partitions]))
    excesses = [excess_of(problem.loads(plan), lo, hi, scale) for plan in plans]
    costs = [problem.bytes_moved(plan) for plan, excess in zip(plans, excesses, strict=True) if not excess]
    cheapest, nearest = least_bytes(problem, lo, hi), least_excess(problem, lo, hi, scale)
    assert (cheapest is None, nearest is None) == (not costs, not plans)
    if cheapest is not None:
        assert cheapest.value == pytest.approx(min(costs)) == cheapest.bound == problem.bytes_moved(cheapest.lists)
        assert cheapest.lists in plans
        assert eased_bound(problem, lo, hi) <= cheapest.value + 1e-6
    if nearest is not None:
        assert nearest.value == pytest.approx(min(excesses), abs=1e-6) == nearest.bound
        assert nearest.lists in plans


@pytest.mark.parametrize("seed", range(60))
def test_the_minimax_is_what_trying_everything_finds(seed: int) -> None:
    rng = Random(seed)
    brokers, block = cluster(rng)
    goal = goal_of(rng)
    try:
        problem = Problem.of(block, brokers, goal)
    except ValueError:
        return
    shares = np.array([[2.0, rng.choice((5.0, 7.0, 11.0)), 3.0] for _ in brokers.rows])
    plans = list(legal_plans(block, brokers, goal, [p.wanted for p in problem.partitions]))
    parts = [fullest(problem, shares, problem.loads(plan)) for plan in plans]
    least = least_fullest(problem, shares)
    assert (least is None) == (not plans)
    if least is not None:
        assert least.value == pytest.approx(min(parts), abs=1e-6) == least.bound
        assert fullest(problem, shares, problem.loads(least.lists)) == pytest.approx(least.value, abs=1e-6)
