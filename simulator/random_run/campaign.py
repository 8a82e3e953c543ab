"""Runs many seeds in parallel, and totals their outcomes."""

from __future__ import annotations

import os
from bisect import insort
from collections import Counter
from collections.abc import Generator, Iterable
from itertools import islice
from multiprocessing.connection import Connection, wait
from operator import attrgetter
from typing import Final

from attrs import define, field

from simulator.random_run.plan import RunPlan
from simulator.random_run.run import RunOutcome
from simulator.random_run.workers import Worker

_MAX_FAILURES: Final = 20
"""Number of failures kept: each holds its last events, and people look at one at a time."""


@define
class CampaignTally:
    """The totals of many runs."""

    seeds: set[int] = field(factory=set)
    failed: int = 0
    failures: list[RunOutcome] = field(factory=list)
    counts: Counter[str] = field(factory=Counter)
    digests: set[str] = field(factory=set)

    @property
    def runs(self) -> int:
        """The number of runs."""
        return len(self.seeds)

    def add(self, outcome: RunOutcome) -> None:
        """Add the outcome of a run."""
        self.seeds.add(outcome.seed)
        self.counts.update(outcome.counts)
        if outcome.digest:
            self.digests.add(outcome.digest)
        if outcome.violation is not None:
            self.failed += 1
            if len(self.failures) < _MAX_FAILURES:
                insort(self.failures, outcome, key=attrgetter("seed"))


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def outcomes(seeds: Iterable[int | RunPlan], *, processes: int) -> Generator[RunOutcome, None, None]:
    """Yield the outcomes of the runs of seeds or plans as they end, from this many concurrent child processes.

    Close the generator to stop them early.
    """
    left = iter(seeds)
    workers: dict[Connection, Worker] = {}
    try:
        for seed in islice(left, processes):
            worker = Worker.started(seed)
            workers[worker.pipe] = worker
        while workers:
            for pipe in [pipe for pipe in wait(list(workers)) if isinstance(pipe, Connection)]:
                yield workers[pipe].outcome()
                worker = workers.pop(pipe)
                for seed in islice(left, 1):
                    worker = worker.go_on(seed)
                    workers[worker.pipe] = worker
    finally:
        for worker in workers.values():
            worker.end()
