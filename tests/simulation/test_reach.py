"""The reach of random runs is measured, and the corpus is chosen by it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from klamm.cli.simulate import simulate
from simulator.actions.processes import Crash, Pause, Start, Wake
from simulator.actions.scene import CONTROLLER, SAME
from simulator.random_run import corpus
from simulator.random_run.happenings import InTurn, Lasting
from simulator.random_run.plan import draw
from simulator.random_run.run import run
from tests.simulation.planted.bugs import planted
from tests.simulation.reach.report import WIDTH, branch_lines, pair_lines, verdicts
from tests.simulation.reach.runs import Pair, Reached, files, kinds, reach
from tests.simulation.reach.selection import Masks, best


def chosen(reached: dict[int, str], count: int) -> list[int]:
    """Return the best of the seeds that reach these letters."""
    masks = Masks()
    for seed, letters in reached.items():
        masks.add(seed, letters)
    return best(masks.by_seed, count)


def test_the_best_seeds_add_most_to_those_before_them() -> None:
    assert chosen({1: "ab", 2: "abcd", 3: "de", 4: "c"}, 2) == [2, 3]


def test_what_is_rare_is_covered_again() -> None:
    assert chosen({1: "abc", 2: "a", 3: "bc", 4: ""}, 4) == [1, 3, 2]


@cache
def of_the_first() -> Reached:
    """Return the reach of the first seed; measuring takes ten times as long as the run."""
    return reach(1)


def test_a_seed_reaches_branches_and_pairs_and_measuring_does_not_change_it() -> None:
    before = run(draw(1)).digest
    found = of_the_first()
    assert run(draw(1)).digest == before
    assert found == reach(1)
    names = {name for name, _, _ in found.branches}
    assert {"controller/handlers/reassignments.py", "controller/node/round_runner.py"} <= names
    assert not any(name.startswith(("simulator/", "broker/")) for name in names)
    assert {pair.moment for pair in found.pairs} <= {"decided", "committed", "published"}
    assert ("U1", "committed") in found.steps


def test_what_was_not_taken_is_shown_with_its_source() -> None:
    found = of_the_first().branches
    taken, missing = verdicts(found)["controller/handlers/brokers.py"]
    assert taken
    lines = list(branch_lines(found))
    [title] = [line for line in lines if line.startswith("controller/handlers/brokers.py")]
    assert title.endswith(f"{len(missing)} of {len(taken) + len(missing)} branches not taken")
    assert all(len(line) <= WIDTH for line in lines)
    jump = next((before, after) for before, after in missing if after > 0)
    source = (files()[0].parents[1] / "handlers" / "brokers.py").read_text(encoding="utf-8").splitlines()
    wanted = f"  {jump[0]:>4} -> {jump[1]:<8} {source[jump[0] - 1].strip()}"[:WIDTH]
    assert wanted in lines


def test_pairs_are_a_table() -> None:
    steps = [("U1", "decided"), ("U1", "committed"), ("grow", "decided")]
    pairs = [Pair("Crash", "U1", "committed"), Pair("Crash", "grow", "decided"), Pair("Pause", "U1", "decided")]
    head, total, crash, pause, last = pair_lines(pairs, steps)
    assert head.split()[:3] == ["right", "after", "U1"]
    assert (total.split()[2], crash.split()[1], pause.split()[1]) == ("2", "1", "1")
    assert (crash.split()[-1], pause.split()[-1]) == ("1", ".")
    assert last == "3 of 6 pairs of an action and a moment of a round"


def test_the_kind_of_an_action_is_what_it_does_first() -> None:
    crash, pause = Lasting(Crash(CONTROLLER), 1.0, (Start(SAME),)), Lasting(Pause(1), 1.0, (Wake(SAME),))
    assert list(kinds(crash)) == ["Crash"]
    assert list(kinds(InTurn((pause, crash)))) == ["Pause", "Crash"]


def test_the_corpus_is_sorted_and_has_each_seed_once() -> None:
    seeds = corpus.read()
    assert len(seeds) == 200
    assert list(seeds) == sorted(set(seeds))


def test_a_corpus_reads_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "PATH", tmp_path / "corpus.txt")
    corpus.write([1003, *range(100, 0, -1)])
    assert corpus.read() == (*range(1, 101), 1003)
    assert all(len(line) <= WIDTH or line.startswith("#") for line in corpus.PATH.read_text().splitlines())


def test_the_corpus_can_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "PATH", tmp_path / "corpus.txt")
    corpus.write([3, 5])
    result = CliRunner().invoke(simulate, ["--seeds", "corpus"])
    assert result.exit_code == 0, result.output
    assert "2 runs, 2 of them different, 0 failed" in result.output


def test_a_run_that_fails_says_why() -> None:
    with planted("no_epoch_bump"):
        failed = next(found for seed in range(1, 30) if (found := reach(seed)).violation is not None)
    assert failed.violation
    assert failed.branches
