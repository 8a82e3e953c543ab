"""`klamm simulate --shrink`, with a planted bug, which only this process has."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from attrs import frozen
from click.testing import CliRunner, Result

from klamm.cli import shrinking
from klamm.cli.simulate import simulate
from simulator.random_run.plan import RunPlan, draw
from simulator.random_run.run import RunOutcome, run as run_plan
from simulator.random_run.workers import DIED
from simulator.safety.invariants import Violation
from simulator.shrinking.trials import Judge, in_this_process
from tests.simulation.planted.bugs import planted
from tests.simulation.test_planted import CAUGHT_BY

BUG = "no_epoch_bump"
SEED = CAUGHT_BY[BUG]["seed"]


@frozen
class Judging:
    """Stands for child processes."""

    judge: Judge


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder, and run everything in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shrinking, "ChildProcesses", lambda _: nullcontext(Judging(in_this_process)))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(simulate, arguments)


def test_a_failing_seed_becomes_a_scenario_that_fails_too(folder: Path) -> None:
    with planted(BUG):
        done = run("--seed", str(SEED), "--shrink")
        again = run(f"seed-{SEED}.yaml")
    text = (folder / f"seed-{SEED}.yaml").read_text(encoding="utf-8")
    assert done.exit_code == again.exit_code == 1
    assert f"\n{text}\n" in done.stdout
    assert " > " in done.stdout.split(text)[1]
    assert done.stdout.endswith(f"\nrun it again with: klamm simulate seed-{SEED}.yaml\n")
    assert f"seed-{SEED}.yaml: with seed {SEED}: {CAUGHT_BY[BUG]['invariant']}" in again.stderr
    assert max(map(len, again.stdout.splitlines())) <= 80
    assert run(f"seed-{SEED}.yaml").exit_code == 0


def test_a_seed_that_does_not_fail_leaves_no_file(folder: Path) -> None:
    done = run("--seed", str(SEED), "--shrink")
    assert done.exit_code == 0
    assert list(folder.iterdir()) == []


def test_ctrl_c_prints_and_writes_the_smallest_so_far(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[RunOutcome] = []

    def impatient(plans: Iterator[RunPlan]) -> Generator[RunOutcome, None, None]:
        for outcome in in_this_process(plans):
            if failed:
                raise KeyboardInterrupt
            failed.extend([outcome] if outcome.violation is not None else [])
            yield outcome

    monkeypatch.setattr(shrinking, "ChildProcesses", lambda _: nullcontext(Judging(impatient)))
    with planted(BUG):
        done = run("--seed", str(SEED), "--shrink")
    assert (done.exit_code, done.stderr) == (130, "interrupted: this is the smallest so far\n")
    assert f"run it again with: klamm simulate seed-{SEED}.yaml" in done.stdout
    assert (folder / f"seed-{SEED}.yaml").exists()


@pytest.mark.soak
def test_only_the_first_failure_of_each_kind_is_shrunk(capsys: pytest.CaptureFixture[str]) -> None:
    with planted(BUG):
        failures = [outcome for outcome in map(outcome_of, (SEED, SEED)) if outcome.violation is not None]
        died = RunOutcome(3, "", {}, Violation(DIED, "its process died with exit code -9"))
        assert shrinking.shrink_failures([*failures, died])
    said = capsys.readouterr().out
    assert len(failures) == 2
    assert said.count("run it again with") == 1
    assert "seed 3: its process died, so there is nothing to shrink it with" in said


def outcome_of(seed: int) -> RunOutcome:
    return run_plan(draw(seed))
