"""Random faults for tests of services: what random runs do to a cluster, except what may lose data by permission."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from operator import attrgetter
from typing import Final

import trio
from attrs import frozen
from trio.testing import MockClock

from klamm.testing.opening import ClusterFactory
from simulator.actions.requests import AlterTopic, Elect
from simulator.actions.scene import Action
from simulator.cluster import SimulatedCluster
from simulator.random_run.coverage import Coverage
from simulator.random_run.features import FEATURES, Chosen, choose
from simulator.random_run.happenings import Happening
from simulator.random_run.scene import carry_out
from simulator.random_run.spectator import Spectator
from simulator.scenario.writer import write_action
from transport.messages import ElectionType

HARMLESS: Final = (
    *("faults", "moves", "crashes in moves", "commits cut off", "shutdowns", "elections", "named leaders"),
    *("late cancels", "stalls", "requests in transit", "refusals"),
)
"""The features of random runs that a service must survive without losing anything."""


async def random_faults(
    c: SimulatedCluster, *, seconds: float = 20.0, features: Collection[str] = HARMLESS
) -> tuple[str, ...]:
    """Disturb a cluster for a time, as its seed decides, and return what was done, one line for each action.

    Processes crash, stop, pause and stall, sessions expire, links break and are slow, and administrators move the
    partitions that exist and elect other leaders. Topics are neither deleted nor changed, and no election is unclean.
    Some faults last beyond the time: await `c.settle()` before you look at the outcome.

    Args:
        c: the cluster.
        seconds: the virtual time to spend.
        features: what may be drawn; each seed draws some of these.
    """
    recorder = _Recorder(c, trio.current_time(), [])
    coverage = Coverage(c.durable, Counter())
    await carry_out(_drawn(c, seconds, features), seconds, c, coverage, recorder)
    return tuple(recorder.done)


def failing_seeds(
    test: Callable[[ClusterFactory], Awaitable[object]], seeds: Iterable[int]
) -> Iterator[tuple[int, str]]:
    """Run a test with one seed after the other, and yield each seed with which it fails, and its error.

    The test takes what the fixture `cluster` is. Call this outside of any trio run.
    """
    for seed in seeds:
        try:
            trio.run(test, ClusterFactory(seed), clock=MockClock(autojump_threshold=0))
        except Exception as error:  # noqa: BLE001  whatever fails is what we are after
            yield seed, _text(error)


def _text(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def _drawn(c: SimulatedCluster, seconds: float, features: Collection[str]) -> list[Happening]:
    """Draw what happens; a seed that draws none of the features gets the first."""
    allowed = [each for each in FEATURES if each.name in features]
    chosen = [each for each in choose(c.world.seed) if each.feature in allowed] or [Chosen(allowed[0], 1)]
    partitions = {str(tp): assignment.replicas for tp, assignment in c.durable.partitions()}
    drawn = [one for each in chosen for one in each.happenings(c.world.seed, c.world.settings, partitions, seconds)]
    return sorted((each for each in drawn if not _may_lose(each.action)), key=attrgetter("at"))


def _may_lose(action: Action) -> bool:
    return isinstance(action, AlterTopic) or (isinstance(action, Elect) and action.kind is ElectionType.UNCLEAN)


@frozen
class _Recorder(Spectator):
    cluster: SimulatedCluster
    began: float
    done: list[str]

    def acts(self, action: Action) -> None:
        """Record an action, in the trace, too."""
        text = write_action(action)
        self.done.append(f"{trio.current_time() - self.began:.3f} s: {text}")
        self.cluster.trace.add("random", "", text)
