"""The lower bound never exceeds the cheapest plan, for every goal."""

from __future__ import annotations

from math import inf
from random import Random

import numpy as np
import pytest

from spark_bridge.errors import PlanError
from spark_bridge.kernel import polish
from spark_bridge.model.block import Block
from spark_bridge.model.brokers import Broker, Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind
from tests.spark.kernel.exact import Problem, least_bytes
from tests.spark.kernel.small import block_of, in_racks
from tests.spark.kernel.verdict import is_proven
from tests.spark.planned import Planned, plan_blocks

LIVE, EXCLUDED, DRAINING, DEAD = BrokerState
FEW, MANY = range(10), range(25)
FEW_STEPS = 300
"""Of annealing: these plans need not be the best."""

NODES = 2_000


@pytest.fixture(autouse=True)
def short_annealing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polish, "_MOST_STEPS", FEW_STEPS)


def cluster_of(rng: Random) -> tuple[Brokers, Block]:
    """Draw a few brokers, not all of which receive, and partitions of which some are empty."""
    racks, states = rng.choice(("_", "ab", "abc", "aab_")), [LIVE] * 4
    states += rng.choices((LIVE, EXCLUDED, DRAINING, DEAD), k=rng.randint(0, 2))
    rng.shuffle(states)
    rows = [
        Broker(n, None if (rack := rng.choice(racks)) == "_" else rack, rng.choice((1.0, 1.0, 2.0)), state=state)
        for n, state in enumerate(states)
    ]
    pull = [rng.uniform(0.2, 1) for _ in rows]
    lists = []
    for _ in range(rng.randint(5, 16)):
        order = sorted(range(len(rows)), key=lambda b: rng.random() ** (1 / pull[b]))
        lists.append(order[: rng.randint(1, 3)])
    sizes, rates = ([rng.choice((0, rng.randint(1, 100))) for _ in lists] for _ in range(2))
    return Brokers.of(rows), block_of(lists, sizes, rates)


def goal_of(rng: Random, kind: GoalKind, brokers: Brokers) -> Goal:
    live = [b.id for b in brokers.rows if b.state is LIVE]
    named, *others = rng.sample(live, len(live))
    names_some = kind in {GoalKind.ADD_BROKERS, GoalKind.REMOVE_BROKERS, GoalKind.RELIEVE}
    return Goal(
        kind,
        frozenset({named} if names_some else ()),
        replication_factor=rng.randint(1, 3) if kind is GoalKind.SET_REPLICATION_FACTOR else None,
        tolerance=rng.choice((0.05, 0.2)),
        exclude=frozenset(others[:1] if rng.random() < 0.3 else ()),
        force=True,
        dead_is_gone=True,
    )


def optimum_of(planned: Planned, block: Block, brokers: Brokers, goal: Goal) -> float:
    """Return what the cheapest plan costs of those that keep to the terms, or come as near for every broker."""
    terms, reached = planned.bounds.terms, planned.bounds.after
    low, high = (a.astype(np.float64) for a in (np.minimum(terms.low, reached), np.maximum(terms.high, reached)))
    high[~terms.sheds] = inf
    answer = least_bytes(Problem.of(block, brokers, goal), low, high, nodes=NODES)
    assert answer is not None
    return answer.value if is_proven(answer) else inf


@pytest.mark.parametrize("kind", GoalKind)
@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.soak)], ids=["few", "many"])
def test_no_bound_is_above_the_optimum(seeds: range, kind: GoalKind) -> None:
    for seed in seeds:
        rng = Random(f"{kind} {seed}")
        brokers, block = cluster_of(rng)
        goal = goal_of(rng, kind, brokers)
        try:
            planned = plan_blocks([block], brokers, goal)
        except PlanError:
            continue
        optimum = optimum_of(planned, block, brokers, goal)
        assert planned.bounds.lower_bound <= optimum + 1e-6, seed


def test_replicas_that_leave_and_are_not_wanted_any_more_are_not_counted() -> None:
    # Three replicas become two, and the third is on the broker that drains.
    brokers = Brokers.of(Broker(n, state=DRAINING if n == 2 else LIVE) for n in range(4))
    goal = Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=2)
    planned = plan_blocks([block_of([[0, 1, 2], [1, 2, 0]], [70, 80])], brokers, goal)
    assert planned.bounds.lower_bound == 0
    brokers = in_racks("____")
    planned = plan_blocks([block_of([[0, 1, 2], [1, 2, 0]], [70, 80])], brokers, goal)
    assert planned.bounds.lower_bound == 0
