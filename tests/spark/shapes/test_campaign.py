"""Plans for random clusters of all shapes keep the rules, and no goal with a plan is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import evolve
from click.testing import CliRunner

from spark_bridge.errors import PlanError
from spark_bridge.model.block import Block
from spark_bridge.model.goal import Goal, GoalKind
from tests.spark.kernel.instances import Instance
from tests.spark.session import SparkSession
from tests.spark.shapes.campaign import Asked, looked_at, main, summed
from tests.spark.shapes.clusters import shaped
from tests.spark.shapes.faults import InstanceOutcome, PlanFault, judged
from tests.spark.shapes.plans import EngineOf, ShapePlan, on_spark, planned
from tests.spark.shapes.test_rules import cluster
from tests.spark.shapes.worker import ReportLine, compared, line_of

SEEDS = {"kernel": range(7), "blocks": range(14), "spark": range(0, 28, 9)}
LONG = range(660)
LONGEST = 300.0
"""Seconds of processor time: how long plans take is measured by the campaign, and not asked of tests."""


def faults_of(outcome: InstanceOutcome) -> list[PlanFault]:
    return [fault for fault in outcome.faults if fault.what != "slow"]


@pytest.mark.parametrize("engine", ["kernel", "blocks"])
def test_clusters_of_all_shapes(engine: str) -> None:
    outcomes = {seed: judged(shaped(seed), engine, longest=LONGEST) for seed in SEEDS[engine]}
    found = {seed: faults for seed, outcome in outcomes.items() if (faults := faults_of(outcome))}
    assert found == {}
    assert sum(outcome.refusal == "rightly" for outcome in outcomes.values()) < len(outcomes) / 2


@pytest.mark.soak
def test_clusters_of_all_shapes_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    for seed in SEEDS["spark"]:
        given = shaped(seed)
        outcome = compared(given, judged(given, "spark", on_spark(spark, tmp_path / "blocks"), longest=LONGEST))
        assert faults_of(outcome) == [], seed


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["kernel", "blocks", "spark"])
def test_many_clusters_of_all_shapes(engine: str) -> None:
    seeds = LONG[::10] if engine == "spark" else LONG
    lines = looked_at([(seed, engine, LONGEST) for seed in seeds], 2)
    assert [line for line in lines if _is_wrong(line)] == []


@pytest.mark.parametrize("seed", [60270, 60599])
def test_planning_again_finds_nothing_where_bounds_are_out_of_reach(seed: int) -> None:
    outcome = judged(shaped(seed), "kernel", longest=LONGEST)
    assert (faults_of(outcome), outcome.moves_again) == ([], False)


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_plan_that_says_it_was_cut_may_move_again(monkeypatch: pytest.MonkeyPatch, *, is_cut: bool) -> None:
    given, made = cluster(Goal(GoalKind.REBALANCE), [0, 1], [1, 2]), list[ShapePlan]()

    def moves_each_time(given: Instance, blocks: Sequence[Block], engine_of: EngineOf) -> ShapePlan:
        made.append(planned(given, blocks, engine_of))
        lists = given.replicas if len(made) == 1 else ((0, 2), (1, 2))
        return evolve(made[-1], lists=lists, is_cut=is_cut)

    monkeypatch.setattr("tests.spark.shapes.faults.planned", moves_each_time)
    outcome = judged(given, "kernel", longest=LONGEST)
    found = [fault.what for fault in outcome.faults if fault.what.startswith("again")]
    assert (found, outcome.moves_again) == (([], True) if is_cut else (["again: moves"], False))
    assert any("1 move again: seeds 0" in row for row in summed([line_of(given, "kernel", outcome)])) is is_cut


def test_a_campaign_says_on_stderr_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_looked_at(asked: Sequence[Asked], _jobs: int) -> list[ReportLine]:
        return [ReportLine(seed, engine, "rebalance", 3, 3, 0.1, "", "", ()) for seed, engine, _ in asked]

    monkeypatch.setattr("tests.spark.shapes.campaign.looked_at", none_looked_at)
    told = CliRunner().invoke(main, ["0..12", "--engine", "kernel", "--engine", "spark"])
    assert told.stderr.splitlines() == [
        "10 of 24 plans, up to seed 4",
        "20 of 24 plans, up to seed 9",
        "24 of 24 plans, up to seed 11",
    ]
    assert "24 plans, 0 with faults" in told.stdout
    assert "of 24" not in told.stdout


def _is_wrong(line: ReportLine) -> bool:
    return any(what != "slow" for what, _ in line.faults)


def test_what_a_planner_does_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    given = shaped(0)
    assert [fault.what for fault in judged(given, "kernel", longest=0.001).faults] == ["slow: ended"]

    def breaks(*_: object) -> None:
        raise IndexError

    monkeypatch.setattr("tests.spark.shapes.plans.plan_cluster", breaks)
    assert [fault.what for fault in judged(given, "kernel", longest=LONGEST).faults] == ["broke down: IndexError"]


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("the plan breaks a rule and was thrown away, please report: t-0", "thrown away"),
        ("the plan would leave the cluster less even than it is", "refused as less even, nothing forced"),
        ("1 replicas find no broker", "refused where there is a plan"),
    ],
)
def test_a_refusal_is_wrong_where_there_is_a_plan(monkeypatch: pytest.MonkeyPatch, said: str, what: str) -> None:
    def refuses(*_: object) -> None:
        raise PlanError(said)

    monkeypatch.setattr("tests.spark.shapes.plans.plan_cluster", refuses)
    given = cluster(Goal(GoalKind.REBALANCE), [0, 1], [1, 2])
    outcome = judged(given, "kernel", longest=LONGEST)
    assert ([fault.what for fault in outcome.faults], outcome.refusal) == ([what], "wrongly")
