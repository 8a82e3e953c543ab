"""Plans of small clusters next to the best ones; `python -m tests.spark.shapes.against_optimum --simple` takes more."""

from __future__ import annotations

from statistics import fmean

import pytest

from tests.spark.kernel.instances import KINDS, instance
from tests.spark.kernel.verdict import Refusal, Verdict, judge
from tests.spark.planned import plan_blocks

FEW, MANY = range(20, 25), range(40)
NODES = 1_000
"""Of the solver: what it cannot prove with these counts as the least it could not rule out."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.soak)], ids=["few", "many"])
def test_plans_of_small_clusters_are_near_the_best_there_are(seeds: range, kind: str) -> None:
    instances = [given for given in map(instance, seeds) if given.kind == kind]
    judged = [judge(given, plan_blocks, nodes=NODES) for given in instances]
    verdicts = [v for v in judged if isinstance(v, Verdict)]
    ratios = [v.ratio for v in verdicts if v.proven]
    assert len(ratios) >= 0.8 * len(instances)
    assert fmean(ratios) <= (1.05 if kind == "rebalance" else 1.01)
    assert max(ratios) <= 1.25
    # Where brokers are drained, what they had goes where it can.
    assert kind == "drain" or fmean(v.uneven for v in verdicts) <= 0.05
    # A cluster is refused only where there is no plan, and no bound is above what is possible.
    assert [r for r in judged if isinstance(r, Refusal) and not r.rightly] == []
    assert [v for v in verdicts if v.proven and v.lower_bound > v.optimum] == []


@pytest.mark.parametrize(
    ("seed", "ratio"),
    [
        # A broker may be above its disk while it gets nothing: what it had may come back to it.
        (342, 1.0),
        # Who is filled is not filled above its bounds, and nobody is by what is forced to move.
        (373, 1.0),
        (526, 1.06),
        # Few moves are good at any time: colder plans alone stay where greedy steps left them.
        (479, 1.25),
    ],
)
def test_plans_that_were_once_far_from_the_best_are_near_it(seed: int, ratio: float) -> None:
    verdict = judge(instance(seed), plan_blocks, nodes=NODES)
    assert isinstance(verdict, Verdict)
    assert verdict.proven
    assert verdict.ratio <= ratio
    assert verdict.uneven <= 0.01
    assert verdict.lower_bound <= verdict.optimum
