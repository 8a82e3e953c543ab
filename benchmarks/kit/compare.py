"""A comparison of the speed of two revisions: the benchmarks run in two trees by turns, and each pair gives a ratio.

`make bench-compare BASE=revision` compares the current tree, with what is not committed, with a worktree of BASE. The
benchmarks of the current tree measure both. One that does not run on BASE, because it needs something that BASE lacks,
is compared with BASE's own. The trees take turns in going first, so that a machine that slows down is fair to both.
Starts of commands are so short that single processes take turns.
The exit code is 1 if a median ratio is above 1.05, and 2 if a benchmark could not be compared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from attrs import evolve, field, frozen

from benchmarks.kit import command, figures
from benchmarks.kit.samples import say, table_line

PAIRS: Final = 5
MOST: Final = 1.05
"""The largest median ratio that is no slower."""

BY_TURNS: Final = frozenset({"starting"})
"""Benchmarks that measure both trees in one run, with `--against`: their pairs are single measurements."""

FEWER_ROUNDS: Final[Mapping[str, tuple[str, ...]]] = {
    "controller_events": ("--rounds", "1"),
    "controller_memory": ("--settle", "15"),
}
"""Arguments of benchmarks that repeat or wait: here the pairs are the rounds."""

Measured = Mapping[tuple[str, str], float]
"""The figures of a run, by row and unit."""


class Unmeasured(Exception):
    """A benchmark ended with an error, or measured nothing."""


@frozen
class Tree:
    """A checkout, and a folder with the benchmarks that measure it."""

    name: str
    root: Path
    measured_by: Path

    def measure(self, benchmark: str) -> Measured:
        """Run a benchmark; raise `Unmeasured` if it fails."""
        noted = self.run(benchmark, *FEWER_ROUNDS.get(benchmark, ()))
        return {(figure.row, figure.unit): figure.value for figure in noted}

    def run(self, benchmark: str, *options: str) -> Sequence[figures.Figure]:
        """Return the figures that a benchmark notes; raise `Unmeasured` if it fails."""
        program = self.measured_by / "benchmarks" / f"{benchmark}.py"
        arguments = [sys.executable, str(program), *options]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "figures"
            # Both come before the current tree, which is installed in the environment.
            places = os.pathsep.join([str(self.measured_by), str(self.root)])
            environment = {**os.environ, "PYTHONPATH": places, figures.VARIABLE: str(path)}
            done = subprocess.run(
                arguments, cwd=self.root, env=environment, check=False, capture_output=True, encoding="utf-8"
            )
            noted = list(figures.read(path))
        if done.returncode or not noted:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise Unmeasured(
                f"{benchmark} measured nothing in {self.name}: {said[-1] if said else 'it printed nothing'}"
            )
        return noted


@frozen
class Selection:
    """The rows to compare: all of a benchmark, or those that have one of some texts."""

    texts: Mapping[str, Sequence[str]] = field(factory=dict)

    @classmethod
    def parse(cls, words: Iterable[str], benchmarks: Sequence[str]) -> Selection:
        """Read words such as `bulk_read` and `controller_events:failover`; all benchmarks without any word."""
        texts: dict[str, list[str]] = defaultdict(list)
        for word in words:
            benchmark, _, text = word.partition(":")
            if benchmark not in benchmarks:
                sys.exit(f"no benchmark is called {benchmark}: ROWS takes words of {', '.join(benchmarks)}")
            texts[benchmark].append(text)
        return cls(texts or {benchmark: [""] for benchmark in benchmarks})

    def has(self, benchmark: str, row: str) -> bool:
        """Return whether a row takes part in the comparison."""
        return any(text in row for text in self.texts[benchmark])


def measure_pairs(benchmark: str, base: Tree, current: Tree, pairs: int) -> Iterator[tuple[Measured, Measured]]:
    """Yield what each pair of runs measured, base and current; raise `Unmeasured` if one of them fails."""
    for number in range(pairs):
        say(f"{benchmark}: pair {number + 1} of {pairs}")
        if number % 2 == 1:
            second = current.measure(benchmark)
            yield base.measure(benchmark), second
            continue
        try:
            first = base.measure(benchmark)
        except Unmeasured as error:
            if base.measured_by == base.root:
                raise
            base = evolve(base, measured_by=base.root)
            say(f"{error}: it is measured by its own benchmark")
            first = base.measure(benchmark)
        yield first, current.measure(benchmark)


def measure_by_turns(
    benchmark: str, base: Tree, current: Tree, texts: Sequence[str]
) -> Iterator[tuple[Measured, Measured]]:
    """Yield the pairs that a benchmark measures itself, base and current; raise `Unmeasured` if it fails.

    It measures the rows with one of the texts.
    """
    say(f"{benchmark}: both trees by turns")
    values: tuple[defaultdict[tuple[str, str], list[float]], ...] = (defaultdict(list), defaultdict(list))
    for figure in current.run(benchmark, "--against", str(base.root), "--rows", *texts):
        values[not figure.is_base][figure.row, figure.unit].append(figure.value)
    for number in range(max(map(len, values[1].values()))):
        first, second = ({key: each[number] for key, each in one.items() if number < len(each)} for one in values)
        yield first, second


def compare(base: Tree, current: Tree, selection: Selection, pairs: int) -> tuple[list[str], list[str]]:
    """Print a row for each figure of both trees; return the rows that are slower, and what could not be compared."""
    print(table_line(["row", "unit", base.name, current.name, "median ratio", "least to most"]))
    print(table_line(["---", "---", "---:", "---:", "---:", "---:"]), flush=True)
    slower, problems = [], []
    for benchmark in selection.texts:
        try:
            measured = list(
                measure_by_turns(benchmark, base, current, selection.texts[benchmark])
                if benchmark in BY_TURNS
                else measure_pairs(benchmark, base, current, pairs)
            )
        except Unmeasured as error:
            problems.append(str(error))
            continue
        everywhere = [run for pair in measured for run in pair]
        keys = [key for key in measured[0][1] if selection.has(benchmark, key[0])]
        if not keys:
            problems.append(f"{benchmark} has no such row")
        for row, unit in keys:
            if not all((row, unit) in run for run in everywhere):
                problems.append(f"{benchmark}: {row} ({unit}) was not measured in both trees")
                continue
            before = [run[row, unit] for run, _ in measured]
            after = [run[row, unit] for _, run in measured]
            ratios = [new / old for old, new in zip(before, after, strict=True)]
            ratio = median(ratios)
            if ratio > MOST:
                slower.append(f"{row} ({unit}): {ratio:.3f}")
            spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
            cells = [row, unit, f"{median(before):.4g}", f"{median(after):.4g}", f"{ratio:.3f}", spread]
            print(table_line(cells), flush=True)
    return slower, problems


@contextmanager
def trees(root: Path, revision: str) -> Iterator[tuple[Tree, Tree]]:
    """Check a revision out for the duration of the block; end the process if there is none of that name."""
    with tempfile.TemporaryDirectory(prefix="klamm-compare-") as folder:
        base, benchmarks = Path(folder) / "base", Path(folder) / "current"
        # A folder of their own for the benchmarks: beside the current packages they would be imported with these.
        benchmarks.mkdir()
        (benchmarks / "benchmarks").symlink_to(root / "benchmarks")
        add = ["git", "worktree", "add", "--detach", str(base), revision]
        done = subprocess.run(add, cwd=root, check=False, capture_output=True, encoding="utf-8")
        if done.returncode:
            sys.exit(f"BASE={revision} cannot be checked out: {done.stderr.strip().splitlines()[-1]}")
        try:
            yield Tree(revision, base, benchmarks), Tree("current", root, benchmarks)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(base)], cwd=root, check=True)


def main() -> int:
    """Compare, and return the exit code."""
    parser = command.parser(__doc__)
    parser.add_argument("base", help="the revision to compare with")
    parser.add_argument("benchmarks", type=Path, nargs="+", help="the files of all benchmarks")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--rows", default="", help="benchmarks or benchmark:text, which rows must have")
    given: argparse.Namespace = parser.parse_args()
    names = [path.stem for path in given.benchmarks]
    root = Path.cwd()
    selection = Selection.parse(given.rows.split(), names)
    with trees(root, given.base) as (base, current):
        slower, problems = compare(base, current, selection, given.pairs)
    for line in (*(f"slower: {row}" for row in slower), *problems):
        print(line, file=sys.stderr)
    return 2 if problems else 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
