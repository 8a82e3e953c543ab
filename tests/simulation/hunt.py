"""Searches for the first seed that catches what is wrong with the product, in child processes."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from time import process_time
from types import FrameType
from typing import Final, TypeVar

from attrs import frozen

from simulator.random_run.plan import RunPlan, draw
from simulator.random_run.run import run
from simulator.safety.invariants import Violation

Item = TypeVar("Item")
Result = TypeVar("Result")

PlanOf = Callable[[int], RunPlan]
"""Draws the plan of a seed."""

SEED_SECONDS: Final = 60.0
"""The most CPU time of one seed, some hundred times that of a sound run: one that takes longer does not end."""

MOST_BYTES: Final = 4 << 30

PART: Final = 20
"""The number of seeds that one child process runs."""

_context = get_context("fork")


class Endless(BaseException):
    """A run does not come to its end. No handler of Exception delays it."""


@frozen
class Catch:
    """The first seed that caught something, and the invariant that did not hold; no seed if none of them did."""

    seed: int | None
    invariant: str
    text: str
    changed: int
    """The number of runs that caught nothing and yet were not as they are without it, if that is known."""

    seconds: float
    """The CPU time of the search."""


def digests_of(seeds: Sequence[int], plan_of: PlanOf = draw) -> dict[int, str]:
    """Return the digests of the runs of seeds."""
    return {seed: run(plan_of(seed)).digest for seed in seeds}


def first_catch(seeds: Iterable[int], digests: Mapping[int, str], plan_of: PlanOf = draw) -> Catch:
    """Run seeds until one of them fails; `digests` are those of their runs as they should be, if they are known."""
    began, changed = process_time(), 0
    for seed in seeds:
        found = _outcome(plan_of(seed))
        if isinstance(found, Violation):
            return Catch(seed, found.invariant, found.text, changed, process_time() - began)
        changed += found != digests.get(seed, found)
    return Catch(None, "", "", changed, process_time() - began)


def _outcome(plan: RunPlan) -> str | Violation:
    """Return the digest of a plan's run, or what was wrong with it."""
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, SEED_SECONDS, 1.0)
    try:
        outcome = run(plan)
    except BaseException as error:  # noqa: BLE001  whatever ends a run is a catch
        return Violation("a run comes to its end", repr(error))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return outcome.digest if outcome.violation is None else outcome.violation


def _give_up(signum: int, frame: FrameType | None) -> None:
    raise Endless(f"more than {SEED_SECONDS:g} s (signal {signum}, at {frame and frame.f_code.co_qualname})")


@frozen
class Died:
    """The process that worked on an item ended without a result."""

    exit_code: int | None


def each_forked(
    work: Callable[[Item], Result], items: Iterable[Item], *, jobs: int
) -> Iterator[tuple[Item, Result | Died]]:
    """Yield the results of `work` as they come, each from a child process of its own, which may change anything."""
    left = iter(items)
    working: dict[Connection, tuple[ForkProcess, Item]] = {}
    try:
        while True:
            for item in islice(left, jobs - len(working)):
                ours, theirs = _context.Pipe(duplex=False)
                process = _context.Process(target=_work, args=(theirs, work, item), daemon=True)
                process.start()
                theirs.close()
                working[ours] = process, item
            if not working:
                return
            for pipe in [pipe for pipe in wait(list(working)) if isinstance(pipe, Connection)]:
                process, item = working.pop(pipe)
                try:
                    yield item, pipe.recv()
                except EOFError:
                    process.join()
                    yield item, Died(process.exitcode)
                process.join()
    finally:
        for process, _ in working.values():
            process.terminate()


def _work(pipe: Connection, work: Callable[[Item], Result], item: Item) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    pipe.send(work(item))


def digests_forked(seeds: Sequence[int], *, jobs: int, plan_of: PlanOf = draw) -> dict[int, str]:
    """Return the digests of the runs of seeds, from child processes: what they find must not depend on each other."""
    parts = [tuple(seeds[start : start + PART]) for start in range(0, len(seeds), PART)]
    found: dict[int, str] = {}
    for part, result in each_forked(partial(digests_of, plan_of=plan_of), parts, jobs=jobs):
        assert not isinstance(result, Died), f"a process of the seeds {part} died"
        found |= result
    return dict(sorted(found.items()))
