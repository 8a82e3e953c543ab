"""A plan compared with the best one: its bytes, its evenness, and its lower bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, inf
from typing import Protocol

import numpy as np
from attrs import frozen

from spark_bridge.errors import PlanError
from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.brokers import Brokers
from spark_bridge.model.goal import Goal
from spark_bridge.rules import disk_tally, disk_violations, violations
from tests.spark.kernel.exact import MOST_NODES, Loads, Problem, Solution, least_bytes, least_excess
from tests.spark.kernel.fair import aims, bands, fair_shares
from tests.spark.kernel.instances import Instance


class Bound(Protocol):
    """A planner's statements about a plan, as far as they are judged."""

    @property
    def lower_bound(self) -> int:
        """Return the bytes that no plan undercuts."""


class PlannerResult(Protocol):
    """A planner's result, as far as it is judged."""

    @property
    def blocks(self) -> Sequence[Block]:
        """Return the blocks as planned."""

    @property
    def bounds(self) -> Bound:
        """Return what the planner states."""


Planner = Callable[[Sequence[Block], Brokers, Goal], PlannerResult]


@frozen
class Verdict:
    """A plan next to the best.

    Attributes:
        seed: Of the instance.
        kind: Of the instance.
        moved: Bytes that the plan moves.
        optimum: The least bytes of any plan that is at least as even: in each measure, every broker is within what the
            goal asks for, or within what the plan reached where that is outside.
        proven: Whether the solver came to its end; else the optimum is what it had shown nobody to undercut.
        lower_bound: What the plan states.
        excess: How far the farthest load is outside of what the goal asks for, as a part of the broker's share.
        least_excess: The least that this could be (or is shown not to be undercut).
    """

    seed: int
    kind: str
    moved: int
    optimum: int
    proven: bool
    lower_bound: int
    excess: float
    least_excess: float

    @property
    def ratio(self) -> float:
        """Return the plan's bytes as a multiple of the optimum; 1 where nothing had to move and nothing does."""
        return self.moved / self.optimum if self.optimum else inf if self.moved else 1.0

    @property
    def uneven(self) -> float:
        """Return how much farther out the plan is than it had to be, in parts of a share."""
        return max(0.0, self.excess - self.least_excess)


@frozen
class Refusal:
    """A plan that was not made.

    Attributes:
        seed: Of the instance.
        kind: Of the instance.
        reason: What the planner said.
        rightly: Whether there is none.
    """

    seed: int
    kind: str
    reason: str
    rightly: bool


def judge(given: Instance, planner: Planner, *, nodes: int = MOST_NODES) -> Verdict | Refusal:
    """Have an instance planned, and compare.

    Raises:
        AssertionError: The plan breaks a hard rule.
    """
    problem = Problem.of(given.block(), given.brokers, given.goal)
    shares = fair_shares(problem, given.brokers)
    lo, hi = aims(problem, *bands(shares, given.goal.tolerance))
    nearest = least_excess(problem, lo, hi, shares, nodes=nodes // 10)
    try:
        plan = planner([given.block()], given.brokers, given.goal)
    except PlanError as refused:
        return Refusal(given.seed, given.kind, str(refused), nearest is None)
    lists = checked(given, plan)
    loads = problem.loads(lists)
    best = least_bytes(problem, np.minimum(lo, loads), np.maximum(hi, loads), nodes=nodes)
    assert best is not None, f"seed {given.seed}: the solver finds no plan where there is one"
    return Verdict(
        seed=given.seed,
        kind=given.kind,
        moved=problem.bytes_moved(lists),
        optimum=ceil(best.bound - 1e-3),
        proven=is_proven(best),
        lower_bound=plan.bounds.lower_bound,
        excess=excess_of(loads, lo, hi, shares),
        least_excess=0.0 if nearest is None else nearest.bound,
    )


def checked(given: Instance, plan: PlannerResult) -> list[frozenset[int]]:
    """Return the planned brokers of each partition, in the order of one block.

    Raises:
        AssertionError: A hard rule is broken.
    """
    broken = [
        line for block in plan.blocks for line in violations(block, given.brokers, given.goal, counts_rests=False)
    ]
    tally = sum(
        (disk_tally(block, given.brokers) for block in plan.blocks), np.zeros((len(given.brokers), 2), np.int64)
    )
    broken += disk_violations(given.brokers, tally)
    assert not broken, f"seed {given.seed}, {given.kind}: {'; '.join(broken)}"
    rows = sorted(
        (block.topics[topic], int(partition), frozenset(map(int, after[after != NOBODY])))
        for block in plan.blocks
        for topic, partition, after in zip(block.topic, block.partition, block.after, strict=True)
    )
    return [brokers for _, _, brokers in rows]


def excess_of(loads: Loads, lo: Loads, hi: Loads, shares: Loads) -> float:
    """Return how far the farthest load is outside its bounds, as a part of its share."""
    return float((np.maximum(np.maximum(lo - loads, loads - hi), 0) / np.maximum(shares, 1e-9)).max())


def is_proven(answer: Solution) -> bool:
    """Return whether no better plan can be."""
    return answer.value - answer.bound < 1e-3 * max(1.0, answer.value * 1e-3)
