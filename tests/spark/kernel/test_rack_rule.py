"""One rule about racks in the planner, the checker and the exact solver: the smallest sufficient limit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from random import Random

import numpy as np
import pytest

from spark_bridge.errors import PlanError
from spark_bridge.kernel import polish
from spark_bridge.kernel.racks import rack_limits
from spark_bridge.model.block import NOBODY, Block, padded
from spark_bridge.model.brokers import Broker, Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.rules import violations
from tests.spark.kernel.exact import Problem
from tests.spark.kernel.small import block_of, in_racks, lists_of
from tests.spark.planned import plan_blocks

LIVE, EXCLUDED, DRAINING, DEAD = BrokerState
MOST_FACTOR = 8
FEW_STEPS = 300
"""Of annealing: these plans need not be the best."""

SOME_LISTS = 3

UNEVEN = in_racks("aaabbbc")


@pytest.fixture(autouse=True)
def short_annealing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polish, "_MOST_STEPS", FEW_STEPS)


def brokers_of(rng: Random) -> Brokers:
    """Draw brokers in uneven racks, some of them without one; not all receive."""
    racks = rng.choice(("abc", "aaab", "aab_", "aaaabbc", "a_", "abcdefgh"))
    states = [LIVE] * rng.choice((4, 7)) + rng.choices(list(BrokerState), k=rng.randint(0, 3))
    rng.shuffle(states)
    return Brokers.of(
        Broker(n, None if rack == "_" else rack, state=state)
        for n, (rack, state) in enumerate(zip(rng.choices(racks, k=len(states)), states, strict=True))
    )


def cluster_of(rng: Random, brokers: Brokers) -> Block:
    """Draw partitions with no regard for racks."""
    most = min(MOST_FACTOR, len(brokers))
    lists = [rng.sample(range(len(brokers)), rng.randint(1, most)) for _ in range(rng.randint(3, 14))]
    return block_of(lists, [rng.randint(0, 100) for _ in lists], [rng.randint(0, 9) for _ in lists])


def goals_of(rng: Random, brokers: Brokers) -> Iterator[Goal]:
    """Yield a goal of each kind; some exclude a broker that keeps what it has."""
    live = [b.id for b in brokers.rows if b.state is LIVE]
    one, other = rng.sample(live, 2)
    for kind in GoalKind:
        named = {one} if kind in {GoalKind.ADD_BROKERS, GoalKind.REMOVE_BROKERS, GoalKind.RELIEVE} else set[int]()
        factor = rng.randint(1, MOST_FACTOR) if kind is GoalKind.SET_REPLICATION_FACTOR else None
        excluded = frozenset({other} if rng.random() < 0.3 else ())
        yield Goal(kind, frozenset(named), replication_factor=factor, exclude=excluded, force=True)


def receiving(brokers: Brokers, goal: Goal) -> list[int]:
    removed = goal.brokers if goal.kind is GoalKind.REMOVE_BROKERS else frozenset[int]()
    return [b.id for b in brokers.rows if b.state is LIVE and b.id not in goal.exclude | removed]


def tried_limit(brokers: Brokers, receivers: list[int], factor: int) -> int:
    """Return how many replicas are in the fullest rack at least, of all ways to place so many; all where none is."""

    def fullest(chosen: tuple[int, ...]) -> int:
        racks = [brokers.rows[b].rack or b for b in chosen]
        return max(map(racks.count, racks))

    return min(map(fullest, combinations(receivers, factor)), default=factor)


@pytest.mark.parametrize(
    "goal",
    [
        Goal(GoalKind.REPAIR_RACKS),
        Goal(GoalKind.REBALANCE, force=True),
        Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=6),
        Goal(GoalKind.ADD_BROKERS, frozenset({6})),
        Goal(GoalKind.REMOVE_BROKERS, frozenset({6})),
    ],
    ids=lambda goal: goal.kind,
)
def test_a_rack_that_is_smaller_than_its_part_leaves_the_others_more(goal: Goal) -> None:
    (planned,) = plan_blocks([block_of([[0, 1, 2, 3, 4, 5]], [7], [7])], UNEVEN, goal).blocks
    assert violations(planned, UNEVEN, goal) == []


@pytest.mark.parametrize("seed", [*range(15), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(15, 40))])
def test_planner_checker_and_solver_take_the_limit_that_trying_all_places_finds(seed: int) -> None:
    rng = Random(seed)
    brokers = brokers_of(rng)
    for goal in goals_of(rng, brokers):
        receivers = receiving(brokers, goal)
        receives = np.isin(brokers.ids, receivers)
        limits = rack_limits(brokers.rack, receives)
        for factor in range(1, MOST_FACTOR + 1):
            limit = tried_limit(brokers, receivers, factor)
            assert limits[factor] == limit
            if goal.replication_factor in {None, factor} and factor <= len(receivers):
                lists = [rng.sample(receivers, factor) for _ in range(SOME_LISTS)]
                hold_to_limit(brokers, goal, lists, limit)


def hold_to_limit(brokers: Brokers, goal: Goal, lists: list[list[int]], limit: int) -> None:
    """See that checker and solver let a list be that has the limit in each rack, and no list that has more."""
    for chosen in lists:
        block = block_of([chosen])
        racks = [brokers.rows[b].rack or b for b in chosen]
        crowd = sum(max(0, racks.count(rack) - limit) for rack in set(racks))
        told = [line for line in violations(block, brokers, goal) if "per rack" in line]
        assert bool(told) == (crowd > 0 and goal.mends), (chosen, told)
        (partition,) = Problem.of(block, brokers, goal).partitions
        assert partition.limit == limit
        assert partition.crowd == (0 if goal.mends else crowd)


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(12, 100))])
def test_no_plan_is_thrown_away_whatever_racks_and_states(seed: int) -> None:
    rng = Random(seed)
    brokers = brokers_of(rng)
    block = cluster_of(rng, brokers)
    for goal in goals_of(rng, brokers):
        try:
            plan = plan_blocks([block], brokers, goal)
        except PlanError as refused:
            # Without disks there are two reasons: nobody is left, or too few for the replication factor.
            assert "no broker is left" in str(refused) or "replication factor" in str(refused)  # noqa: PT017
            assert most_wanted(block, goal) > len(receiving(brokers, goal))
        else:
            counts_rests = bool(plan.bounds.terms.rests.any())
            broken = [violations(each, brokers, goal, counts_rests=counts_rests) for each in plan.blocks]
            assert broken == [[]], goal.kind


def most_wanted(block: Block, goal: Goal) -> int:
    return goal.replication_factor or int(np.count_nonzero(block.before != NOBODY, axis=1).max())


def test_what_an_excluded_broker_keeps_takes_a_place_of_its_rack() -> None:
    # Receivers are one in each rack; broker 1 keeps its replica or hands it to rack b, but never shares rack a.
    brokers = Brokers.of(Broker(n, rack, state=EXCLUDED if n == 1 else LIVE) for n, rack in enumerate("aab"))
    goal = Goal(GoalKind.REPAIR_RACKS)
    (planned,) = plan_blocks([block_of([[1, 0], [1, 2]])], brokers, goal).blocks
    assert lists_of(planned.after)[1] == [1, 2]
    assert violations(planned, brokers, goal) == []
    assert violations(block_of([[0, 1]]), brokers, goal) != []
    assert violations(block_of([[0, 1]]).with_after(padded([[2, 1]])), brokers, goal) == []
