"""Runs plans in child processes, ahead of the answers: while one is awaited, the next candidates run."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from itertools import islice
from types import TracebackType
from typing import Self

from attrs import define, field

from simulator.random_run.plan import RunPlan
from simulator.random_run.run import RunOutcome
from simulator.random_run.workers import DIED, Worker
from simulator.safety.invariants import Violation
from simulator.shrinking.trials import SECONDS


@define(eq=False)
class ChildProcesses:
    """A number of processes, which end with the block."""

    count: int
    seconds: float = SECONDS
    """The real time that a run may take; one that takes longer counts as one whose process died."""

    _idle: list[Worker] = field(factory=list, init=False)
    _busy: deque[Worker] = field(factory=deque, init=False)

    def judge(self, plans: Iterator[RunPlan]) -> Generator[RunOutcome, None, None]:
        """Yield the outcomes of the plans, in their order."""
        # Runs that an earlier answer has made pointless end soon, and sooner than a process starts.
        while self._busy:
            self._next_outcome()
        while True:
            for plan in islice(plans, self.count - len(self._busy)):
                self._busy.append(self._idle.pop().go_on(plan) if self._idle else Worker.started(plan))
            if not self._busy:
                return
            yield self._next_outcome()

    def _next_outcome(self) -> RunOutcome:
        worker = self._busy[0]
        if not worker.pipe.poll(self.seconds):
            self._busy.popleft().end()
            return RunOutcome(0, "", {}, Violation(DIED, f"it took more than {self.seconds:g} s"))
        outcome = worker.outcome()
        self._idle.append(self._busy.popleft())
        return outcome

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for worker in (*self._idle, *self._busy):
            worker.end()
