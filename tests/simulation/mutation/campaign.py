"""Mutation testing of the controller: how many small changes random runs notice, and how many the tests do.

`python -m tests.simulation.mutation.campaign` draws mutants from a seed. Each is run in a child process with seeds of
the default draw, until one fails, and then with the tests near it. A mutant that does not end, or ends its process,
counts as killed. The exit code is 1 if a mutant that nothing kills has no verdict in `verdicts.toml`, or if a verdict
there is wrong.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from types import FrameType
from typing import Final

import pytest
from attrs import frozen

from simulator.random_run.campaign import cores
from tests.simulation.hunt import Died, Endless, digests_forked, each_forked, first_catch
from tests.simulation.mutation import verdicts
from tests.simulation.mutation.mutants import ROOT, Mutant, apply, changed_text, drawn

FOLDERS: Final = ("controller/handlers", "controller/model", "controller/channels")
FILES: Final = ("controller/node/round_runner.py",)
TESTS: Final = ("tests/controller", "tests/channels")
"""The tests near the mutants, which take about a minute."""

MUTANTS: Final = 120
SEEDS: Final = 100
TEST_SECONDS: Final = 300.0
"""The most CPU time of the tests."""


@frozen
class Fate:
    """The fate of a mutant: the first seed that failed, if any, and whether the tests did; None if not run."""

    seed: int | None
    by: str
    changed: int
    tests_failed: bool | None

    @property
    def killed_by(self) -> str:
        """The killer of the mutant: "seeds", "tests", or "nothing"."""
        if self.seed is not None:
            return "seeds"
        return "tests" if self.tests_failed else "nothing"


def judge(mutant: Mutant, *, digests: Mapping[int, str], tests: Sequence[str], always: bool) -> Fate:
    """Run seeds, then tests, against a mutant. With `always`, the tests run even if a seed has failed."""
    apply(mutant)
    catch = first_catch(digests, digests)
    run_tests = bool(tests) and (always or catch.seed is None)
    return Fate(catch.seed, catch.invariant, catch.changed, _fail(tests) if run_tests else None)


def _fail(tests: Sequence[str]) -> bool:
    """Return whether a test fails, or the tests do not come to their end."""
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silent, stream)
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, TEST_SECONDS, 1.0)
    try:
        return pytest.main(["-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *tests]) != pytest.ExitCode.OK
    except BaseException:  # noqa: BLE001  whatever ends the tests is a failure
        return True
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def _give_up(signum: int, frame: FrameType | None) -> None:
    raise Endless(f"the tests take more than {TEST_SECONDS:g} s (signal {signum}, at {frame and frame.f_lineno})")


def modules() -> list[str]:
    """Return the paths of the modules that are mutated."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.py"))]
    return [*(str(path.relative_to(ROOT)) for path in found if path.name != "__init__.py"), *FILES]


def line(mutant: Mutant, fate: Fate) -> str:
    """Return a mutant's line of the table."""
    tests = {None: "-", True: "killed", False: "survives"}[fate.tests_failed]
    seed = "survives" if fate.seed is None else str(fate.seed)
    return f"{seed:>8}  {fate.changed:7}  {tests:8}  {mutant.name}  => {changed_text(mutant)}"


def summary(fates: Sequence[Fate], equivalent: int) -> str:
    """Return how many mutants were killed by what."""
    seeds = [fate.seed for fate in fates if fate.seed is not None]
    killers = Counter(fate.killed_by for fate in fates)
    middle = f", median first seed {median(seeds):g}" if seeds else ""
    return (
        f"{len(fates)} mutants: {killers['seeds']} killed by random runs{middle}; {killers['tests']} by the tests only;"
        f" {killers['nothing']} survive both, of which {equivalent} are equivalent"
    )


def main() -> int:
    """Draw, judge, print, and return the exit code."""
    given = _arguments()
    mutants = [each for each in drawn(modules(), given.mutants, given.seed) if given.only in each.name]
    tests = () if given.no_tests else TESTS
    fates: dict[Mutant, Fate] = {}
    digests = digests_forked(range(1, given.seeds + 1), jobs=given.jobs)
    work = partial(judge, digests=digests, tests=tests, always=given.always)
    print(f"{'seed':>8}  {'changed':>7}  {'tests':8}  mutant")
    for mutant, result in each_forked(work, mutants, jobs=given.jobs):
        fates[mutant] = Fate(1, "a process lives", 0, None) if isinstance(result, Died) else result
        print(line(mutant, fates[mutant]), flush=True)
    known = verdicts.load()
    print(summary(list(fates.values()), sum(mutant.name in known.equivalent for mutant in fates)))
    judged = fates if tests else {}
    faults = [fault for mutant, fate in judged.items() if (fault := known.fault(mutant.name, fate.killed_by))]
    print(*faults, sep="\n")
    return 1 if faults else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=MUTANTS, help="the number of mutants")
    parser.add_argument("--only", default="", help="of these, those whose names contain this text")
    parser.add_argument("--seed", type=int, default=1, help="the seed from which mutants are drawn")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="the most random runs for each mutant")
    parser.add_argument("--jobs", type=int, default=cores(), help="the number of processes")
    parser.add_argument("--no-tests", action="store_true", help="random runs only")
    parser.add_argument("--always", action="store_true", help="run the tests even if a random run failed")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
