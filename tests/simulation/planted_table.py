"""Searches for the first seed that catches each planted bug, and prints a table.

`python -m tests.simulation.planted_table` fails if a bug is not caught by the default draw, or too few are caught soon.
With `--write`, the seeds that `test_planted` replays are recorded anew: they change with the plans and the product.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from attrs import evolve

from simulator.random_run.campaign import cores
from simulator.random_run.plan import draw
from tests.simulation.hunt import Catch, Died, digests_forked, each_forked, first_catch
from tests.simulation.planted.bugs import AREA_OF, BUGS, draws_of, plan_of, planted

RECORD: Final = Path(__file__).parent / "planted" / "caught_by.toml"
MOST_SEEDS: Final = 1000
STAGES: Final = (5, 20, 60, 150)
"""All bugs are searched for in so many seeds, then those not caught in more: most results are seen soon."""

SOON: Final = 100
NEEDED_SOON: Final = 30

Draws = tuple[bool, tuple[str, ...]]


def search(name: str, *, seeds: Sequence[int], digests: Mapping[Draws, Mapping[int, str]]) -> Catch:
    """Return the first seed that catches a bug; `digests` are those of sound runs, by how they are drawn."""
    with planted(name):
        return first_catch(seeds, digests.get(draws_of(name), {}), plan_of(name))


def stages(seeds: Sequence[int]) -> list[Sequence[int]]:
    """Divide seeds into stages."""
    ends = [0, *(end for end in STAGES if end < len(seeds)), len(seeds)]
    return [seeds[before:end] for before, end in pairwise(ends)]


def search_all(names: Sequence[str], seeds: Sequence[int], *, jobs: int, compares: bool) -> Iterator[tuple[str, Catch]]:
    """Yield the first seed that catches each bug, those that are caught early first."""
    left = dict.fromkeys(names, Catch(None, "", "", 0, 0.0))
    for number, stage in enumerate(stages(seeds), 1):
        kinds = {draws_of(name): plan_of(name) for name in left} if compares else {}
        digests = {kind: digests_forked(stage, jobs=jobs, plan_of=draws) for kind, draws in kinds.items()}
        for name, result in each_forked(partial(search, seeds=stage, digests=digests), list(left), jobs=jobs):
            catch = Catch(stage[0], "a process lives", str(result), 0, 0.0) if isinstance(result, Died) else result
            before = left[name]
            left[name] = evolve(catch, changed=before.changed + catch.changed, seconds=before.seconds + catch.seconds)
            if catch.seed is not None or number == len(stages(seeds)):
                yield name, left.pop(name)


def line(name: str, catch: Catch) -> str:
    """Return a bug's line of the table."""
    seed = "-" if catch.seed is None else str(catch.seed)
    caught = f"{catch.invariant}: {catch.text}" if catch.invariant else "not caught"
    return f"{name:50} {AREA_OF[name]:16} {seed:>4} {catch.changed:7} {catch.seconds:7.1f}  {caught:.130}"


def summary(found: Mapping[str, Catch]) -> str:
    """Return how many bugs were caught, and within how many seeds."""
    seeds = [catch.seed for catch in found.values() if catch.seed is not None]
    soon = [seed for seed in seeds if seed <= SOON]
    return f"{len(found)} bugs, {len(seeds)} caught within {MOST_SEEDS} seeds, {len(soon)} of them within {SOON}"


def record(found: Mapping[str, Catch]) -> str:
    """Return the text of the file from which `test_planted` takes its seeds; bugs not searched for keep theirs."""
    kept = tomllib.loads(RECORD.read_text()) if RECORD.exists() else {}
    caught = {name: {"seed": c.seed, "invariant": c.invariant} for name, c in found.items() if c.seed is not None}
    entries = {name: caught.get(name, kept.get(name)) for name in BUGS if name in caught or name not in found}
    lines = [
        f'{name} = {{ seed = {entry["seed"]}, invariant = "{entry["invariant"]}" }}\n'
        for name, entry in entries.items()
        if entry is not None
    ]
    return "".join(["# Written by: python -m tests.simulation.planted_table --write\n", *lines])


def main() -> int:
    """Search, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bugs", nargs="*", help="the names or areas of bugs; all by default")
    parser.add_argument("--jobs", type=int, default=cores(), help="the number of processes")
    parser.add_argument("--seeds", type=int, default=MOST_SEEDS, help="the most seeds for each bug")
    parser.add_argument("--first", type=int, default=1, help="the first seed: a later one may catch a bug in less time")
    parser.add_argument("--plan", default="", help="only seeds whose plan has this text: a regular expression")
    parser.add_argument("--compare", action="store_true", help="count the runs that a bug changes and nothing catches")
    parser.add_argument("--write", action="store_true", help="record the seeds for test_planted")
    given = parser.parse_args()
    names = [name for name in BUGS if not given.bugs or name in given.bugs or AREA_OF[name] in given.bugs]
    found: dict[str, Catch] = {}
    seeds = [seed for seed in range(given.first, given.seeds + 1) if re.search(given.plan, draw(seed).text())]
    for name, catch in search_all(names, seeds, jobs=given.jobs, compares=given.compare):
        found[name] = catch
        print(line(name, catch), flush=True)
    recorded = tomllib.loads(RECORD.read_text())
    for name in [name for name in names if found[name].seed is None and name in recorded]:
        # A rare bug is known by the seed that found it in the product first.
        found[name] = search(name, seeds=[recorded[name]["seed"]], digests={})
    print(f"\n{'bug':50} {'area':16} {'seed':>4} {'changed':>7} {'seconds':>7}  caught by")
    for name in names:
        print(line(name, found[name]))
    print(summary(found))
    if given.write:
        RECORD.write_text(record(found))
    caught = [catch.seed for catch in found.values() if catch.seed is not None]
    is_met = len(caught) == len(names) and len([seed for seed in caught if seed <= SOON]) >= min(
        NEEDED_SOON, len(names)
    )
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
