"""The moves of a plan, in the order in which they are carried out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from klamm.cli.planning.made_from import MADE_FROM, MadeFrom
from klamm.cli.rollout.plan_files import PlanFiles
from spark_bridge.model.goal import GoalKind

MOVES = ([1, 2], [1, 5]), ([3, 2], [5, 2]), ([2, 3], [3, 5]), ([4, 3], [4, 5])
"""The replicas of partitions before and after: the second and the last one leave broker 3."""


@pytest.fixture
def plan(tmp_path: Path) -> PlanFiles:
    """Return a plan in two files."""
    moves = [
        {"topic": "orders", "partition": number, "replicas": after, "before": before}
        for number, (before, after) in enumerate(MOVES)
    ]
    for number, some in enumerate((moves[:3], moves[3:]), 1):
        (tmp_path / f"plan-{number:04}.json").write_text(json.dumps({"version": 1, "partitions": some}))
    return PlanFiles(tmp_path)


def order(plan: PlanFiles) -> list[int]:
    return [tp.partition for tp in plan.read().file.targets]


def test_moves_that_empty_a_broker_come_first(plan: PlanFiles) -> None:
    digest = plan.read().digest
    MadeFrom(GoalKind.REMOVE_BROKERS, "", (), None, {"brokers": frozenset({3, 9})}).write(plan.path)
    assert order(plan) == [1, 3, 0, 2]
    assert plan.read().digest == digest


def test_a_plan_that_empties_no_broker_keeps_its_order(plan: PlanFiles) -> None:
    assert order(plan) == [0, 1, 2, 3]
    MadeFrom(GoalKind.ADD_BROKERS, "", (), None, {"brokers": frozenset({3})}).write(plan.path)
    assert order(plan) == [0, 1, 2, 3]
    (plan.path / MADE_FROM).write_text("damaged")
    assert order(plan) == [0, 1, 2, 3]
    assert order(PlanFiles(plan.path / "plan-0002.json")) == [3]
