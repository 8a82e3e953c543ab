"""Child processes, each of which executes random runs one at a time."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import ForkContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from attrs import define

from simulator.random_run.plan import RunPlan, draw
from simulator.random_run.run import RunOutcome, run
from simulator.safety.invariants import Violation

DIED: Final = "a run comes to its end"
"""The invariant that a run violates if its process dies."""

_JOIN_SECONDS: Final = 5.0

_THREADS: Final = Path("/proc/self/task")
"""Where Linux lists the threads of a process; other systems do not have it."""


@define(eq=False)
class Worker:
    """A child process and its current run, named by a seed or given by a plan."""

    process: BaseProcess
    pipe: Connection
    """Readable once `outcome` has something to return."""

    work: int | RunPlan

    @classmethod
    def started(cls, work: int | RunPlan) -> Worker:
        """Start a process with its first run."""
        forks = _may_fork()
        context: SpawnContext | ForkContext = get_context("fork") if forks else get_context("spawn")
        if not forks:
            # It would be started with the first child, and unblock SIGINT.
            resource_tracker.ensure_running()
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, ours if forks else None), daemon=True)
        with _without_sigint():
            process.start()
        theirs.close()
        ours.send(work)
        return cls(process, ours, work)

    def outcome(self) -> RunOutcome:
        """Return the outcome of the run. The death of the process counts as a violation, too."""
        try:
            outcome: RunOutcome = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(_JOIN_SECONDS)
            text = f"its process died with exit code {self.process.exitcode}"
            seed = self.work.seed if isinstance(self.work, RunPlan) else self.work
            return RunOutcome(seed, "", {}, Violation(DIED, text))
        return outcome

    def go_on(self, work: int | RunPlan) -> Worker:
        """Start on another run; return the worker that executes it, a new one if this process has died."""
        try:
            self.pipe.send(work)
        except OSError:
            self.end()
            return Worker.started(work)
        self.work = work
        return self

    def end(self) -> None:
        """Terminate the process, even in the middle of a run."""
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def _may_fork() -> bool:
    """Return whether a child may begin as a copy of this process, which spares it a second of imports.

    It may not where another thread could hold a lock at that moment.
    """
    return _THREADS.exists() and len(list(_THREADS.iterdir())) == 1


@contextmanager
def _without_sigint() -> Iterator[None]:
    """Block SIGINT in children started in the block: Ctrl-C reaches the whole group, and we end our children."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection, parents_end: Connection | None) -> None:
    gc.freeze()
    # The child ends with its parent, however the parent ends, so nobody else may keep the parent's end open.
    if parents_end is not None:
        parents_end.close()
    with suppress(EOFError, OSError):
        while True:
            work: int | RunPlan = pipe.recv()
            pipe.send(run(work if isinstance(work, RunPlan) else draw(work)))
