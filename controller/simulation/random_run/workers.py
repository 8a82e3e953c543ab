"""Child processes, each of which executes one random run after the other."""

from __future__ import annotations

import gc
import signal
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from attrs import define

from controller.simulation.invariants import Violation
from controller.simulation.random_run.plan import draw
from controller.simulation.random_run.run import Outcome, run

_JOIN_SECONDS = 5.0

_context = get_context("spawn")


@define(eq=False)
class Worker:
    """A child process and the seed that it works on."""

    process: BaseProcess
    pipe: Connection
    """Ready to be read from when `outcome` has something to return."""

    seed: int

    @classmethod
    def started(cls, seed: int) -> Worker:
        """Start a process, on a first seed."""
        ours, theirs = _context.Pipe()
        process = _context.Process(target=_serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        ours.send(seed)
        return cls(process, ours, seed)

    def outcome(self) -> Outcome:
        """Return what came of the seed. That the process died is a violation, too."""
        try:
            outcome: Outcome = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(_JOIN_SECONDS)
            text = f"its process died with exit code {self.process.exitcode}"
            return Outcome(self.seed, "", {}, Violation("a run comes to its end", text))
        return outcome

    def go_on(self, seed: int) -> Worker:
        """Work on another seed; return the worker that does so, a new one if this process died."""
        try:
            self.pipe.send(seed)
        except OSError:
            self.end()
            return Worker.started(seed)
        self.seed = seed
        return self

    def end(self) -> None:
        """End the process, whatever it does."""
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def _serve(pipe: Connection) -> None:
    # Ctrl-C reaches the whole group of processes: the parent ends its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    # It ends with its parent, in whatever way that ends.
    with suppress(EOFError, OSError):
        while True:
            seed: int = pipe.recv()
            pipe.send(run(draw(seed)))
