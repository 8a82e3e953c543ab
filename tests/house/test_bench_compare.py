"""Two trees are compared by the median of the ratios of pairs, and a row that is slower decides the exit code."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from benchmarks import starting
from benchmarks.kit import compare, figures

BENCHMARK: Final = """
from benchmarks.kit import figures
from product import COST

figures.note("steady row", "s", 2.0)
figures.note("row that changes", "s", COST)
"""

BY_TURNS: Final = """
import sys
from pathlib import Path
from benchmarks.kit import figures

assert (sys.argv[1], sys.argv[3:]) == ("--against", ["--rows", "start"]), sys.argv
for _ in range(3):
    for tree in Path(sys.argv[2]), Path.cwd():
        cost = float((tree / "product.py").read_text().split()[-1])
        figures.note("start", "s", cost, is_base=tree != Path.cwd())
"""

GIT: Final = ("git", "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a repository with one benchmark, in which the row that changes costs 1 s."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "quick.py").write_text(BENCHMARK)
    (tmp_path / "product.py").write_text("COST = 1.0\n")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "base"]):
        subprocess.run([*GIT, *words], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def compared(monkeypatch: pytest.MonkeyPatch, *words: str, base: str = "HEAD") -> int:
    monkeypatch.setattr("sys.argv", ["compare", base, "benchmarks/quick.py", "--pairs", "2", *words])
    return compare.main()


@pytest.mark.parametrize(("cost", "exit_code"), [(1.04, 0), (1.06, 1), (0.5, 0)])
def test_a_median_above_1_05_is_slower(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cost: float, exit_code: int
) -> None:
    (tree / "product.py").write_text(f"COST = {cost}\n")
    assert compared(monkeypatch) == exit_code
    printed = capsys.readouterr()
    ratio = f"{cost:.3f}"
    assert f"| row that changes | s | 1 | {cost:.4g} | {ratio} | {ratio} to {ratio} |" in printed.out.splitlines()
    assert ("slower: row that changes (s)" in printed.err) is (exit_code == 1)
    # The worktree of the base is gone.
    worktrees = subprocess.run(["git", "worktree", "list"], cwd=tree, check=True, capture_output=True, text=True)
    assert len(worktrees.stdout.splitlines()) == 1


@pytest.mark.parametrize(("cost", "exit_code"), [(1.04, 0), (1.06, 1)])
def test_a_benchmark_that_takes_turns_itself_is_compared_in_one_run(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cost: float, exit_code: int
) -> None:
    monkeypatch.setattr(compare, "BY_TURNS", {"quick"})
    (tree / "benchmarks" / "quick.py").write_text(BY_TURNS)
    (tree / "product.py").write_text(f"COST = {cost}\n")
    assert compared(monkeypatch, "--rows", "quick:start") == exit_code
    spread = f"{cost:.3f} to {cost:.3f}"
    assert f"| start | s | 1 | {cost:.4g} | {cost:.3f} | {spread} |" in capsys.readouterr().out.splitlines()


def test_commands_are_started_in_both_trees_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, bool]] = []
    noted: list[tuple[str, bool]] = []
    current, base = Path("current"), Path("base")

    def start(words: str, tree: Path) -> float:
        started.append((words, tree == base))
        return 1.0

    def note(row: str, unit: str, value: float, *, is_base: bool) -> None:
        assert (unit, value) == (starting.UNIT, 1.0)
        noted.append((row, is_base))

    monkeypatch.setattr(starting, "COMMANDS", ("top", "demo"))
    monkeypatch.setattr(starting, "start", start)
    monkeypatch.setattr(figures, "note", note)
    starting.measure_by_turns(current, base, ["top", "nowhere"])
    turns = [True, False, False, True] * (starting.TURNS // 2)
    # The first start of each compiles what it imports, and does not count.
    assert started == [("top", is_base) for is_base in (False, True, *turns)]
    assert noted == [("start of klamm top --help", is_base) for is_base in turns]


def test_rows_that_are_not_selected_do_not_count(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "product.py").write_text("COST = 3.0\n")
    assert compared(monkeypatch, "--rows", "quick:steady") == 0
    assert compared(monkeypatch, "--rows", "quick:steady quick:changes") == 1
    assert compared(monkeypatch, "--rows", "quick:nothing") == 2


def test_a_base_without_what_the_benchmark_needs_is_measured_by_its_own(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "product.py").write_text("NEW_COST = 1.2\n")
    (tree / "benchmarks" / "quick.py").write_text(BENCHMARK.replace("COST", "NEW_COST"))
    assert compared(monkeypatch) == 1
    printed = capsys.readouterr()
    assert "| row that changes | s | 1 | 1.2 | 1.200 | 1.200 to 1.200 |" in printed.out.splitlines()
    assert "it is measured by its own benchmark" in printed.err


def test_a_benchmark_that_fails_is_no_success(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "benchmarks" / "quick.py").write_text("raise SystemExit('broken')\n")
    assert compared(monkeypatch) == 2
    assert "quick measured nothing in current: broken" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "base", "message"),
    [
        (["--rows", "slow"], "HEAD", "no benchmark is called slow: ROWS takes words of quick"),
        ([], "nowhere", "BASE=nowhere cannot be checked out"),
    ],
)
def test_mistakes_are_named(
    tree: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], base: str, message: str
) -> None:
    del tree
    with pytest.raises(SystemExit, match=message):
        compared(monkeypatch, *words, base=base)
