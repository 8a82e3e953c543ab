"""Random runs that tell what they reach: branches of the controller, and pairs of a round and what struck at it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import trio
from attrs import define, field, frozen
from coverage import Coverage

from simulator.actions.scene import Action
from simulator.cluster import SimulatedCluster
from simulator.random_run.campaign import cores
from simulator.random_run.coverage import RIGHT_AFTER_SECONDS
from simulator.random_run.happenings import InTurn, Lasting
from simulator.random_run.plan import draw
from simulator.random_run.run import run
from simulator.random_run.spectator import Spectator
from simulator.steps import ControllerStep

ROOT: Final = Path(__file__).parents[3]
ROOMS: Final = ("handlers", "model", "channels", "node")
"""The rooms of the controller whose branches count."""

Branch = tuple[str, int, int]
"""A file, and the lines of a jump within it."""


@frozen(order=True)
class Pair:
    """A moment of a round, and the action right after it."""

    kind: str
    round: str
    moment: str


@frozen
class Reached:
    """The branches and pairs that a seed reached."""

    seed: int
    branches: frozenset[Branch]
    pairs: frozenset[Pair]
    steps: frozenset[tuple[str, str]]
    """The moments of rounds that happened, whether or not anything struck."""

    violation: str | None = None
    """Why the run failed."""


@define
class PairWatcher(Spectator):
    """Notes what is carried out right after which moment of a round."""

    pairs: dict[Pair, None] = field(factory=dict)
    steps: dict[tuple[str, str], None] = field(factory=dict)
    _last: tuple[str, str] = ("", "")
    _at: float = -1.0

    def begins(self, cluster: SimulatedCluster) -> None:
        """Watch the steps from now on."""
        cluster.steps.watch(self._step)

    def acts(self, action: Action) -> None:
        """Note a pair if a round is in progress."""
        if trio.current_time() - self._at <= RIGHT_AFTER_SECONDS:
            for kind in kinds(action):
                self.pairs[Pair(kind, *self._last)] = None

    def _step(self, step: ControllerStep) -> bool:
        self._last, self._at = (step.round, step.moment.value), trio.current_time()
        self.steps[self._last] = None
        return False


def kinds(action: Action) -> Iterator[str]:
    """Yield the kinds of what an action does first."""
    match action:
        case Lasting(fault=fault):
            yield from kinds(fault)
        case InTurn(strikes=strikes):
            for strike in strikes:
                yield from kinds(strike)
        case _:
            yield type(action).__name__


def files() -> list[Path]:
    """Return the files whose branches count."""
    return sorted(path for room in ROOMS for path in (ROOT / "controller" / room).glob("*.py"))


@cache
def tracer() -> Coverage:
    """Return the tracer of this process."""
    include = [str(ROOT / "controller" / room / "*") for room in ROOMS]
    return Coverage(data_file=None, branch=True, include=include, config_file=False)


def reach(seed: int) -> Reached:
    """Run a seed, and return what it reached."""
    watcher, tracing = PairWatcher(), tracer()
    tracing.erase()
    with tracing.collect():
        outcome = run(draw(seed), spectator=watcher)
    data = tracing.get_data()
    branches = {
        (str(Path(name).relative_to(ROOT)), *jump)
        for name in sorted(data.measured_files())
        for jump in data.arcs(name) or ()
    }
    violation = None if outcome.violation is None else str(outcome.violation)
    return Reached(seed, frozenset(branches), frozenset(watcher.pairs), frozenset(watcher.steps), violation)


def reached(seeds: Iterable[int]) -> Iterator[Reached]:
    """Yield what each seed reaches, from child processes."""
    with ProcessPoolExecutor(cores(), get_context("spawn")) as pool:
        yield from pool.map(reach, seeds, chunksize=1)
