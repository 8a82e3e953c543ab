"""The branches and pairs that no seed reached, as text of 80 columns."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from attrs import define, field
from coverage import Coverage

from simulator.random_run.coverage import CRASH_POINTS, DELETION_POINTS
from tests.simulation.reach.runs import ROOT, Branch, Pair, Reached, files

WIDTH: Final = 80
_LABEL: Final = 20
_CELL: Final = 4
_OTHER: Final = "others"
_NO_BRANCH: Final = ("assert_never", "if TYPE_CHECKING")


Jump = tuple[int, int]
"""The lines of a jump within a file."""


@define
class Union:
    """The branches and pairs that all seeds reached together."""

    seeds: int = 0
    branches: set[Branch] = field(factory=set)
    pairs: set[Pair] = field(factory=set)
    steps: set[tuple[str, str]] = field(factory=set)

    def add(self, reached: Reached) -> None:
        """Add what a seed reached."""
        self.seeds += 1
        self.branches |= reached.branches
        self.pairs |= reached.pairs
        self.steps |= reached.steps


def lines(union: Union) -> Iterator[str]:
    """Yield what was not reached."""
    yield from branch_lines(union.branches)
    yield ""
    yield from pair_lines(union.pairs, union.steps)


def branch_lines(branches: Iterable[Branch]) -> Iterator[str]:
    """Yield the branches that were not taken, by file and with their lines of source."""
    taken = possible = 0
    for name, (executed, missing) in sorted(verdicts(branches).items()):
        taken, possible = taken + len(executed), possible + len(executed) + len(missing)
        if missing:
            yield f"{name}: {len(missing)} of {len(executed) + len(missing)} branches not taken"
            source = (ROOT / name).read_text(encoding="utf-8").splitlines()
            for before, after in missing:
                target = "the end" if after < 0 else f"{after}"
                yield f"  {before:>4} -> {target:<8} {source[before - 1].strip()}"[:WIDTH]
    yield f"{taken:,} of {possible:,} branches taken ({taken / possible:.1%})"


def verdicts(branches: Iterable[Branch]) -> dict[str, tuple[list[Jump], list[Jump]]]:
    """Return the branches of each file that were taken, and those that were not."""
    jumps: defaultdict[str, set[Jump]] = defaultdict(set)
    for name, before, after in branches:
        jumps[str(ROOT / name)].add((before, after))
    paths = [str(path) for path in files()]
    tracing = Coverage(data_file=None, branch=True, include=paths, config_file=False)
    tracing.set_option("report:exclude_also", list(_NO_BRANCH))
    tracing.get_data().add_arcs({name: jumps[name] for name in paths})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "reached.json"
        tracing.json_report(outfile=str(path))
        report = json.loads(path.read_text(encoding="utf-8"))["files"]
    return {
        str((ROOT / name).relative_to(ROOT)): (_jumps(found["executed_branches"]), _jumps(found["missing_branches"]))
        for name, found in report.items()
    }


def _jumps(pairs: Iterable[list[int]]) -> list[Jump]:
    return sorted((before, after) for before, after in pairs)


def pair_lines(pairs: Collection[Pair], steps: Collection[tuple[str, str]]) -> Iterator[str]:
    """Yield a table: right after how many of the moments of each round each kind of action was carried out."""
    columns = [*CRASH_POINTS, *DELETION_POINTS, _OTHER]
    kinds = sorted({pair.kind for pair in pairs})
    yield f"{'right after':{_LABEL}}{''.join(f'{name[: _CELL - 1]:>{_CELL}}' for name in columns)}"
    yield _row("(all moments)", Counter(_column(name) for name, _ in steps), columns)
    for kind in kinds:
        yield _row(kind, Counter(_column(pair.round) for pair in pairs if pair.kind == kind), columns)
    yield f"{len(pairs):,} of {len(kinds) * len(steps):,} pairs of an action and a moment of a round"


def _row(label: str, counts: Counter[str], columns: Iterable[str]) -> str:
    cells = [f"{counts[name] or '.':>{_CELL}}" for name in columns]
    return f"{label[: _LABEL - 1]:{_LABEL}}{''.join(cells)}"


def _column(name: str) -> str:
    return name if name in CRASH_POINTS or name in DELETION_POINTS else _OTHER
