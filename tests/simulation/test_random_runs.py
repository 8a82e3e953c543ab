"""Random runs: equal for the same seed, different for others, and counted correctly."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing

import pytest
import trio

from simulator.actions.requests import ValidateBrokerSettings, ValidateSettings
from simulator.random_run import report
from simulator.random_run.campaign import CampaignTally, outcomes
from simulator.random_run.coverage import CRASH_POINTS, NEEDED
from simulator.random_run.features import FEATURES, choose
from simulator.random_run.plan import draw
from simulator.random_run.run import RunOutcome, run
from simulator.random_run.workers import Worker
from tests.simulation.planted.bugs import planted

_PRINT_DIGESTS = """
import sys
from simulator.random_run.features import FEATURES, choose
from simulator.random_run.plan import draw
from simulator.random_run.run import run
print(*(run(draw(int(seed))).digest for seed in sys.argv[1:]))
"""


def digests(seeds: Sequence[int], *, hash_seed: int) -> list[str]:
    """Run seeds in a process of its own."""
    command = [sys.executable, "-c", _PRINT_DIGESTS, *map(str, seeds)]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()


def test_a_seed_gives_the_same_trace_in_another_process() -> None:
    seeds = (1, 4)
    first = digests(seeds, hash_seed=1)
    assert first == digests(seeds, hash_seed=2)
    assert len(set(first)) == len(seeds)


def test_a_plan_depends_on_its_seed_alone() -> None:
    plans = [draw(seed).text() for seed in range(200)]
    assert plans == [draw(seed).text() for seed in range(200)]
    assert len(set(plans)) == len(plans)


def test_each_feature_is_in_some_plans_and_missing_in_others() -> None:
    drawn = [{chosen.feature.name for chosen in choose(seed)} for seed in range(100)]
    names = {feature.name for feature in FEATURES}
    assert set.union(*drawn) == names
    assert set.intersection(*drawn) == set()


def test_some_plans_have_few_features_and_much_of_each_and_others_have_many() -> None:
    drawn = [choose(seed) for seed in range(100)]
    assert any(len(few) == 1 and few[0].times > 1 for few in drawn)
    assert any(len(many) > 2 / 3 * len(FEATURES) for many in drawn)


def test_checks_of_settings_leave_the_rest_of_a_plan_as_it_was() -> None:
    checked = (ValidateSettings, ValidateBrokerSettings)
    for seed in range(1, 30):
        plan, plain = draw(seed, always=("validated settings",)), draw(seed)
        rest = [each for each in plan.happenings if not isinstance(each.action, checked)]
        assert rest == [each for each in plain.happenings if not isinstance(each.action, checked)]
        assert len(plan.happenings) >= len(rest) + 2


def test_a_plan_prints_its_features() -> None:
    lines = draw(1).text().splitlines()
    [drawn] = [line for line in lines if line.startswith("drawn")]
    assert all(str(chosen) in drawn for chosen in choose(1))


def test_disks_are_lost_too() -> None:
    assert any("wipe=True" in draw(seed).text() for seed in range(200))


def test_runs_in_child_processes_give_the_same_as_here() -> None:
    seeds = (1, 4)
    tally = CampaignTally()
    with closing(outcomes(seeds, processes=2)) as found:
        for outcome in found:
            tally.add(outcome)
    assert tally.failures == []
    assert tally.runs == len(seeds)
    assert tally.digests == {run(draw(seed)).digest for seed in seeds}


def test_a_process_that_dies_is_a_failure_of_its_seed_and_another_goes_on() -> None:
    worker = Worker.started(7)
    try:
        worker.process.kill()
        outcome = worker.outcome()
        assert outcome.seed == 7
        assert outcome.violation is not None
        assert "exit code -9" in outcome.violation.text
        worker = worker.go_on(1)
        assert worker.outcome() == run(draw(1))
    finally:
        worker.end()


def test_a_failure_says_what_how_and_how_to_see_it_again() -> None:
    with planted("no_epoch_bump"):
        outcome = next(found for seed in range(1, 20) if (found := run(draw(seed))).violation is not None)
    lines = list(report.failure_lines(outcome))
    assert outcome.violation is not None
    text = " ".join(line.strip() for line in lines)
    assert text.startswith(f"seed {outcome.seed} failed: {outcome.violation.invariant}: ")
    assert 1 < len(outcome.last) <= 30
    assert " violation " in outcome.last[-1]
    assert lines[-1] == f"replay it with: klamm simulate --seed {outcome.seed}"


def test_what_nobody_foresaw_fails_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError("nobody foresaw this")

    monkeypatch.setattr("simulator.random_run.run.carry_out", broken)
    violation = run(draw(1)).violation
    assert violation is not None
    assert violation.invariant == "a run ends without an exception"
    assert "nobody foresaw this" in violation.text


def test_the_counts_are_shown_with_what_is_needed() -> None:
    tally = CampaignTally()
    tally.add(RunOutcome(1, "a", {"controller crashes right after B6": 3, "moves done": 5}))
    lines = list(report.tally_lines(tally))
    assert all(any(line.startswith(name) for line in lines) for name in NEEDED)
    [b6] = [line.split() for line in lines if line.startswith("controller crashes right after B6")]
    assert b6[-3:] == ["3", "3,000", "20"]
    assert lines[-1] == "1 run, 1 of them different, 0 failed"


def test_crash_points_are_hit() -> None:
    """Plans of a tenth of the thousand seeds strike at each round somewhere."""
    plans = "\n".join(draw(seed).text() for seed in range(100))
    assert all(f"AtStep(round='{name}'" in plans for name in CRASH_POINTS)


def test_the_names_of_counts_leave_room_for_the_numbers() -> None:
    assert [name for name in NEEDED if len(name) > 46] == []
