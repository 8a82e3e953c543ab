"""The processor time in which a command starts: `klamm --help`, and the help of one command of each group.

Each is a process of its own, run several times; the shortest time counts. A first run, which does not count, compiles
what has changed. What a command imports is all that differs between them.

With `--against`, single processes of two trees take turns: whole runs one after the other differ by more than the bar.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.kit import figures
from benchmarks.kit.command import parser

RUNS: Final = 7
TURNS: Final = 14
UNIT: Final = "processor, s"
COMMANDS: Final = (
    "",
    "broker list",
    "cluster describe",
    "completion",
    "config alter",
    "consume",
    "controller run",
    "demo",
    "leader elect",
    "log-dirs describe",
    "plan rebalance",
    "produce",
    "reassignment execute",
    "rollout run",
    "simulate",
    "state dump",
    "top",
    "topic describe",
    "zookeeper run",
)


def start(words: str, tree: Path) -> float:
    """Return the processor time, in s, of a process that prints the help of a command of a tree."""
    command = [sys.executable, "-m", "klamm", *words.split(), "--help"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # Before the tree that is installed in the environment.
    environment["PYTHONPATH"] = str(tree)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(tree: Path) -> None:
    """Print a row for each command."""
    print(f"| command | processor time until its help is printed, least of {RUNS}, s |\n| --- | ---: |")
    for words in COMMANDS:
        start(words, tree)
        seconds = min(start(words, tree) for _ in range(RUNS))
        print(f"| `{_line(words)}` | {seconds:.2f} |", flush=True)
        figures.note(_row(words), UNIT, seconds)


def measure_by_turns(tree: Path, base: Path, texts: Sequence[str]) -> None:
    """Note each start of the commands with one of some texts in both trees, which take turns in going first."""
    for words in [words for words in COMMANDS if any(text in _row(words) for text in texts)]:
        start(words, tree)
        try:
            start(words, base)
        except subprocess.CalledProcessError:
            sys.exit(f"{_line(words)} ends with an error in {base}")
        for turn in range(TURNS):
            for one in (base, tree) if turn % 2 == 0 else (tree, base):
                figures.note(_row(words), UNIT, start(words, one), is_base=one == base)


def _row(words: str) -> str:
    return f"start of {_line(words)}"


def _line(words: str) -> str:
    return f"klamm {words} --help".replace("  ", " ")


def main() -> None:
    """Print a row for each command, or note the starts in two trees."""
    commands = parser(__doc__)
    commands.add_argument("--against", type=Path, help="the tree with which the current folder takes turns")
    commands.add_argument("--rows", nargs="*", default=[""], help="with --against: texts, of which a row must have one")
    given = commands.parse_args()
    if given.against is None:
        measure(Path.cwd())
    else:
        measure_by_turns(Path.cwd(), given.against, given.rows)


if __name__ == "__main__":
    main()
