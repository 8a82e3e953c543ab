"""Tries plans that may still fail in the same way, each at most once, until a time is up."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import Final

from attrs import define, evolve, field

from simulator.random_run.plan import RunPlan
from simulator.random_run.run import RunOutcome, run
from simulator.safety.invariants import Violation

Judge = Callable[[Iterator[RunPlan]], Generator[RunOutcome, None, None]]
"""Runs plans and yields their outcomes in the same order. It may take plans ahead of the outcomes that are taken."""

SECONDS: Final = 120.0
"""The real time that is spent on one seed."""

_EXCEPTION: Final = "exception"


def in_this_process(plans: Iterator[RunPlan]) -> Generator[RunOutcome, None, None]:
    """Yield the outcomes of plans run here, one after the other."""
    for plan in plans:
        yield run(plan)


def kind_of(violation: Violation) -> str:
    """Return what violations of the same kind share: the invariant; of exceptions, also the name."""
    if _EXCEPTION in violation.invariant:
        return f"{violation.invariant}: {violation.text.partition(':')[0]}"
    return violation.invariant


@define(eq=False)
class Trials:
    """The trials of one seed."""

    best: RunPlan
    """The smallest plan so far that fails."""

    kind: str
    """The kind of violation that is wanted."""

    judge: Judge
    seconds: float = SECONDS
    clock: Callable[[], float] = time.monotonic  # noqa: TID251  people wait for it
    on_run: Callable[[Trials], None] = lambda _: None
    """Called after each run."""

    runs: int = field(default=0, init=False)
    passed_through: list[RunPlan] = field(factory=list, init=False)
    """Each plan that was the best one, and is no more."""

    _tried: set[str] = field(factory=set, init=False)
    _began: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._began = self.clock()
        self.best = evolve(self.best, features=())

    @property
    def spent(self) -> float:
        """The real seconds spent so far."""
        return self.clock() - self._began

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.spent >= self.seconds

    def first(self, candidates: Iterable[RunPlan | None]) -> int | None:
        """Try candidates until one fails as wanted, which becomes the best one; return its place, or None.

        A candidate that is None cannot be made; one that was tried before is not tried again.
        """
        waiting: deque[tuple[int, RunPlan]] = deque()
        with closing(self.judge(self._fresh(candidates, waiting))) as outcomes:
            for outcome in outcomes:
                place, plan = waiting.popleft()
                self.runs += 1
                self._tried.add(_identity(plan))
                self.on_run(self)
                if outcome.violation is not None and kind_of(outcome.violation) == self.kind:
                    self.passed_through.append(self.best)
                    self.best = plan
                    return place
        return None

    def _fresh(self, candidates: Iterable[RunPlan | None], waiting: deque[tuple[int, RunPlan]]) -> Iterator[RunPlan]:
        for place, plan in enumerate(candidates):
            if self.is_over:
                return
            if plan is not None and _identity(plan) not in self._tried and plan != self.best:
                waiting.append((place, plan))
                yield plan


def _identity(plan: RunPlan) -> str:
    return f"{plan} {plan.settings.broker_ids}"
