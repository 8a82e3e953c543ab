"""Plans of small clusters next to the best there are; `python -m tests.spark.kernel.against_optimum` takes more."""

from __future__ import annotations

from statistics import fmean

import pytest

from spark_bridge.engines.in_process import plan_blocks
from tests.spark.kernel.instances import KINDS, instance
from tests.spark.kernel.verdict import Refusal, Verdict, judge

SEEDS = range(48)
NODES = 1_000
"""Of the solver: what it cannot prove with these counts as the least it could not rule out."""


@pytest.fixture(scope="module")
def judged() -> list[Verdict | Refusal]:
    return [judge(instance(seed), plan_blocks, nodes=NODES) for seed in SEEDS]


@pytest.fixture(scope="module")
def verdicts(judged: list[Verdict | Refusal]) -> list[Verdict]:
    return [v for v in judged if isinstance(v, Verdict)]


@pytest.mark.parametrize("kind", KINDS)
def test_few_bytes_more_move_than_have_to(verdicts: list[Verdict], kind: str) -> None:
    ratios = [v.ratio for v in verdicts if v.kind == kind and v.proven]
    assert len(ratios) >= 8
    assert fmean(ratios) <= (1.05 if kind == "rebalance" else 1.01)
    assert max(ratios) <= 1.25


def test_plans_are_about_as_even_as_can_be(verdicts: list[Verdict]) -> None:
    assert fmean(v.uneven for v in verdicts if v.kind in {"add", "replace", "rebalance"}) <= 0.05


def test_a_plan_is_refused_only_where_there_is_none(judged: list[Verdict | Refusal]) -> None:
    assert [r for r in judged if isinstance(r, Refusal) and not r.rightly] == []


def test_no_stated_bound_is_above_the_optimum(verdicts: list[Verdict]) -> None:
    assert [v for v in verdicts if v.proven and v.lower_bound > v.optimum] == []
