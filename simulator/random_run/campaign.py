"""Runs many seeds at once, and adds up what came of them."""

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

from simulator.random_run.run import Outcome
from simulator.random_run.workers import Worker

_MAX_FAILURES: Final = 20
"""How many failures are kept: each comes with its last events, and one is looked at at a time."""


@define
class Tally:
    """What came of many runs."""

    seeds: set[int] = field(factory=set)
    failed: int = 0
    failures: list[Outcome] = field(factory=list)
    counts: Counter[str] = field(factory=Counter)
    digests: set[str] = field(factory=set)

    @property
    def runs(self) -> int:
        """How many they were."""
        return len(self.seeds)

    def add(self, outcome: Outcome) -> None:
        """Take a run into account."""
        self.seeds.add(outcome.seed)
        self.counts.update(outcome.counts)
        if outcome.digest:
            self.digests.add(outcome.digest)
        if outcome.violation is not None:
            self.failed += 1
            if len(self.failures) < _MAX_FAILURES:
                insort(self.failures, outcome, key=attrgetter("seed"))


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def outcomes(seeds: Iterable[int], *, processes: int) -> Generator[Outcome, None, None]:
    """Yield the outcomes of the seeds' runs as they end, from so many child processes at once.

    Close the generator to end them early.
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
