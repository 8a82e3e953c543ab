"""Opens a simulated cluster in a trio run on virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import trio
from attrs import frozen
from trio.testing import MockClock

from simulator.cluster import SimulatedCluster, simulated_cluster
from simulator.scheduling import deterministic_scheduling
from simulator.settings import Settings
from simulator.trace import Trace

LAST_ENTRIES: Final = 30
"""Number of trace entries in an exception's note."""


@asynccontextmanager
async def open_cluster(
    *, seed: int = 0, trace: Trace | None = None, **settings: Any
) -> AsyncIterator[SimulatedCluster]:
    """Run a cluster, in service from the start to the end of the block. `settings` are those of `Settings`.

    The seed decides everything, so that running the same code at the same virtual time repeats the run. An exception
    that ends the block gets a note with the seed and the end of the trace.

    Raises Violation in the middle of the block if an invariant does not hold; RuntimeError if time is not virtual;
    TypeError for an unknown setting.
    """
    _require_virtual_time()
    trace = trace or Trace()
    with deterministic_scheduling(seed):
        try:
            async with simulated_cluster(Settings(**settings), seed=seed, trace=trace) as cluster:
                yield cluster
        except BaseException as error:
            tell_story(error, seed, trace)
            raise


def tell_story(error: BaseException, seed: int, trace: Trace) -> None:
    """Add a note with the cluster's seed and the end of its trace to an exception, once."""
    title = f"The simulated cluster had the seed {seed}, and this is how its trace ends:"
    if not any(note.startswith(title) for note in getattr(error, "__notes__", ())):
        error.add_note("\n".join([title, *trace.last(LAST_ENTRIES)]))


def _require_virtual_time() -> None:
    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, MockClock) or clock.autojump_threshold != 0:
        raise RuntimeError(
            "a simulated cluster needs virtual time: use the fixture `cluster` of klamm.testing.plugin, "
            "or trio.run(..., clock=trio.testing.MockClock(autojump_threshold=0))"
        )


@frozen
class ClusterFactory:
    """The value of the fixture `cluster`: call it with settings, and enter the result."""

    seed: int

    def __call__(self, **settings: Any) -> AbstractAsyncContextManager[SimulatedCluster]:
        """Return a context manager that runs a cluster; see `open_cluster`."""
        return open_cluster(seed=self.seed, **settings)
