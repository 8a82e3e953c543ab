"""The processor time in which a command starts: `klamm --help`, and the help of one command of each group.

Each is a process of its own, run several times; the shortest time counts. A first run, which does not count, compiles
what has changed. What a command imports is all that differs between them.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from typing import Final

from benchmarks.kit import figures
from benchmarks.kit.command import parser

RUNS: Final = 7
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


def seconds_of(words: str) -> float:
    """Return the shortest processor time, in s, of a process that prints the help of a command."""
    command = [sys.executable, "-m", "klamm", *words.split(), "--help"]
    _once(command)
    return min(_once(command) for _ in range(RUNS))


def _once(command: list[str]) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a row for each command."""
    parser(__doc__).parse_args()
    print(f"| command | processor time until its help is printed, least of {RUNS}, s |\n| --- | ---: |")
    for words in COMMANDS:
        seconds = seconds_of(words)
        line = f"klamm {words} --help".replace("  ", " ")
        print(f"| `{line}` | {seconds:.2f} |", flush=True)
        figures.note(f"start of {line}", "processor, s", seconds)


if __name__ == "__main__":
    main()
