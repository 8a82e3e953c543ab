"""Child processes, each of which executes random runs one at a time."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Final

from attrs import define

from simulator.random_run.plan import RunPlan, draw
from simulator.random_run.run import RunOutcome, run
from simulator.safety.invariants import Violation

DIED: Final = "a run comes to its end"
"""The invariant that a run violates if its process dies."""

_JOIN_SECONDS = 5.0

_context = get_context("spawn")


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
        ours, theirs = _context.Pipe()
        process = _context.Process(target=_serve, args=(theirs,), daemon=True)
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


@contextmanager
def _without_sigint() -> Iterator[None]:
    """Block SIGINT in children started in the block: Ctrl-C reaches the whole group, and we end our children."""
    # Starting the tracker unblocks SIGINT. The first child would start it, so start it before SIGINT is blocked.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection) -> None:
    gc.freeze()
    # The child ends with its parent, however the parent ends.
    with suppress(EOFError, OSError):
        while True:
            work: int | RunPlan = pipe.recv()
            pipe.send(run(work if isinstance(work, RunPlan) else draw(work)))
