"""Child processes, each of which executes random runs one at a time."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from attrs import define

from simulator.random_run.plan import draw
from simulator.random_run.run import RunOutcome, run
from simulator.safety.invariants import Violation

_JOIN_SECONDS = 5.0

_context = get_context("spawn")


@define(eq=False)
class Worker:
    """A child process and its current seed."""

    process: BaseProcess
    pipe: Connection
    """Readable once `outcome` has something to return."""

    seed: int

    @classmethod
    def started(cls, seed: int) -> Worker:
        """Start a process with its first seed."""
        ours, theirs = _context.Pipe()
        process = _context.Process(target=_serve, args=(theirs,), daemon=True)
        with _without_sigint():
            process.start()
        theirs.close()
        ours.send(seed)
        return cls(process, ours, seed)

    def outcome(self) -> RunOutcome:
        """Return the outcome of the seed. The death of the process counts as a violation, too."""
        try:
            outcome: RunOutcome = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(_JOIN_SECONDS)
            text = f"its process died with exit code {self.process.exitcode}"
            return RunOutcome(self.seed, "", {}, Violation("a run comes to its end", text))
        return outcome

    def go_on(self, seed: int) -> Worker:
        """Start on another seed; return the worker that runs it, a new one if this process has died."""
        try:
            self.pipe.send(seed)
        except OSError:
            self.end()
            return Worker.started(seed)
        self.seed = seed
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
            seed: int = pipe.recv()
            pipe.send(run(draw(seed)))
