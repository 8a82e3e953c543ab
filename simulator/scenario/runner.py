"""Runs a scenario on a simulated cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio
from attrs import define, field

from broker.client import GaveUp
from controller.admin.active_controller import ClusterUnreachable, OutcomeUnknown
from simulator import scheduling
from simulator.actions.requests import CreateTopics
from simulator.actions.scene import CannotBeDone, Request, Scene, Strike
from simulator.administration import partition_named
from simulator.cluster import NotInTime, SimulatedCluster, simulated_cluster
from simulator.quiet_logs import ignore, quiet_logs
from simulator.safety.invariants import Violation
from simulator.scenario import expectations, random_play
from simulator.scenario.model import PATIENCE, Expectations, Scenario, ScenarioEvent
from simulator.scenario.nouns import Reach, When
from simulator.scenario.outcome import Chronicle, Miss, PlayedEvent, ScenarioOutcome
from simulator.steps import ControllerStep, Moment
from simulator.trace import Trace
from transport.errors import ApiError
from transport.messages import PartitionState
from transport.wire import WireError

POLL_SECONDS: Final = 0.05
_TOLERANCE: Final = 1e-6
"""Seconds by which an event may be late: times are sums of floating point numbers."""

_MOMENTS: Final = {
    Reach.DECIDES: (Moment.DECIDED,),
    Reach.COMMITS: (Moment.COMMITTED,),
    Reach.REACHES: (Moment.COMMITTED, Moment.PUBLISHED),
    Reach.PUBLISHES: (Moment.PUBLISHED,),
}


def run(scenario: Scenario, *, seed: int | None = None, keep_trace: bool = False) -> ScenarioOutcome:
    """Run a scenario in a trio run of its own, to its end or its first violation.

    Args:
        scenario: what to run.
        seed: the seed of everything that the scenario leaves to chance; by default the scenario's own, or else 0.
        keep_trace: whether the outcome has the whole trace instead of only its last entries.
    """
    trace = Trace(keep_all=keep_trace)
    seed = (scenario.seed or 0) if seed is None else seed
    if not scenario.in_order:
        return random_play.play(scenario, seed, trace)
    play = _Play(scenario, Chronicle())
    violation = None
    try:
        with quiet_logs(ignore):
            scheduling.run(partial(play.run, seed, trace), seed=seed)
    except (Violation, NotInTime) as error:
        violation = str(error)
    return play.outcome(seed, trace, violation)


@define
class _Play:
    """One run of a scenario."""

    scenario: Scenario
    chronicle: Chronicle
    _scene: Scene = field(init=False)
    _states: tuple[PartitionState, ...] = field(default=(), init=False)
    _controller: int | None = field(default=None, init=False)
    _acknowledged: int = field(default=0, init=False)
    _began: float | None = field(default=None, init=False)
    """The time at which all topics existed; the scenario's times are counted from then."""

    _ended: float = field(default=0.0, init=False)

    async def run(self, seed: int, trace: Trace) -> None:
        """Run the scenario. Raises Violation; NotInTime if the cluster does not start."""
        async with simulated_cluster(self.scenario.settings, seed=seed, trace=trace) as cluster:
            self._scene = Scene(cluster)
            cluster.steps.watch(self._record)
            try:
                with quiet_logs(partial(cluster.world.safety.report, "nothing fails unexpectedly")):
                    if await self._begin():
                        await self._play_events()
                        await cluster.settle(within=self.scenario.settles)
                        cluster.load.stop()
                        self._compare(self.scenario.expect_line, self.scenario.expect)
            finally:
                self._end(cluster)

    def outcome(self, seed: int, trace: Trace, violation: str | None) -> ScenarioOutcome:
        """Return the outcome of the run."""
        return ScenarioOutcome(
            self.scenario.path,
            self.scenario.variant,
            seed,
            self.chronicle,
            violation,
            self._states,
            self._controller,
            self._acknowledged,
            self._ended - (self._began or 0.0),
            trace,
        )

    def _end(self, cluster: SimulatedCluster) -> None:
        states = [cluster.durable.state(tp) for tp, _ in cluster.durable.partitions()]
        self._states = tuple(state for state in states if state is not None)
        self._controller = cluster.active_controller
        self._acknowledged = cluster.load.acknowledged
        self._ended = trio.current_time()

    async def _begin(self) -> bool:
        """Create the topics and start the load; return whether the run can continue."""
        for topic in self.scenario.topics:
            try:
                await CreateTopics((topic,)).ask(self._scene)
            except ApiError as error:
                self._miss(self.scenario.topics_line, f"topic {topic.name} was refused: {error}")
                return False
        self._began = trio.current_time()
        load = self.scenario.load
        if load is not None:
            names = load.partitions or [
                f"{topic.name}-{number}" for topic in self.scenario.topics for number in range(topic.count)
            ]
            self._scene.cluster.load.start("producer-0", [partition_named(name) for name in names], load.per_second)
        return True

    # --- events -------------------------------------------------------------------------------------------------

    async def _play_events(self) -> None:
        """Play each event when its trigger fires; watching for it begins as soon as the previous event has happened."""
        before = trio.Event()
        before.set()
        async with trio.open_nursery() as nursery:
            self._scene.nursery = nursery  # the run continues until faults that last have ended
            if self.scenario.lasts is not None:
                nursery.start_soon(trio.sleep, self.scenario.lasts)
            for event in self.scenario.events:
                struck = await self._wait_for(event, before)
                before = trio.Event()
                nursery.start_soon(self._carry_out, event, struck, before)

    async def _wait_for(self, event: ScenarioEvent, before: trio.Event) -> bool:
        """Wait for an event's trigger; return whether the event was carried out in the middle of a step."""
        trigger = event.trigger
        if trigger.when is not None:
            if trigger.at is not None:
                await trio.sleep(max(0.0, trigger.at - self._now()))
            return await self._wait_for_step(event, trigger.when)
        if trigger.at is not None:
            if self._now() > trigger.at + _TOLERANCE:
                self._miss(event.line, f"{event.text}: it happened at {self._now():.3f} s, not at {trigger.at:g} s")
            await trio.sleep(max(0.0, trigger.at - self._now()))
        else:
            await before.wait()
            await trio.sleep(trigger.after)
        return False

    async def _wait_for_step(self, event: ScenarioEvent, when: When) -> bool:
        tp = None if when.partition is None else partition_named(when.partition)
        came = trio.Event()
        is_strike = isinstance(event.action, Strike) and not event.trigger.after

        def watcher(step: ControllerStep) -> bool:
            if step.round != when.round or step.moment not in _MOMENTS[when.reach]:
                return False
            if tp is not None and tp not in step.subjects:
                return False
            if is_strike:
                self._strike(event)
            came.set()
            return True

        self._scene.cluster.steps.watch(watcher)
        with trio.move_on_after(PATIENCE):
            await came.wait()
        if came.is_set():
            if event.trigger.after:
                await trio.sleep(event.trigger.after)
            return is_strike
        self._scene.cluster.steps.unwatch(watcher)
        what = f"{when.partition or 'anything'} {when.reach.value} {when.round}"
        self._miss(event.line, f"{what} did not happen within {PATIENCE:g} s")
        return False

    async def _carry_out(self, event: ScenarioEvent, struck: bool, done: trio.Event) -> None:  # noqa: FBT001
        if isinstance(event.action, Request):
            await self._ask(event, event.action)
        elif not struck:
            self._strike(event)
        await self._expect(event)
        done.set()

    def _strike(self, event: ScenarioEvent) -> None:
        if not isinstance(event.action, Strike):
            return
        self._happened(event)
        try:
            event.action.strike(self._scene)
        except CannotBeDone as error:
            self._miss(event.line, str(error))

    async def _ask(self, event: ScenarioEvent, action: Request) -> None:
        """Make a request, and compare its outcome with the expected one."""
        self._happened(event)
        code, text = await _refusal(partial(action.ask, self._scene))
        if code is not None:
            self.chronicle.entries.append(PlayedEvent(self._now(), f"refused: {text}"))
        if code != event.expect.refused:
            there = "it was not refused" if code is None else f"it was refused: {text}"
            wanted = "no refusal" if event.expect.refused is None else event.expect.refused
            self._miss(event.line, f"{event.text}: {there}, expected {wanted}")

    # --- expectations -------------------------------------------------------------------------------------------

    async def _expect(self, event: ScenarioEvent) -> None:
        """Wait for what an event waits for, or else for its expectations, and record what does not hold in time."""
        with trio.move_on_after(event.within):
            while self._misses(event.waits_for or event.expect):  # noqa: ASYNC110  it is looked up in the store
                await trio.sleep(POLL_SECONDS)
        if event.waits_for is not None:
            self._compare(event.line, event.waits_for, f"waited {event.within:g} s: ")
        with trio.move_on_after(event.stays):
            while not self._misses(event.expect):  # noqa: ASYNC110  it is looked up in the store
                await trio.sleep(POLL_SECONDS)
        self._compare(event.line, event.expect)

    def _misses(self, expected: Expectations) -> list[str]:
        return expectations.misses(expected, self._scene.cluster, self.chronicle)

    def _compare(self, line: int, expected: Expectations, prefix: str = "") -> None:
        self.chronicle.expectations += expectations.count(expected)
        for text in self._misses(expected):
            self._miss(line, prefix + text)

    # --- recording ----------------------------------------------------------------------------------------------

    def _now(self) -> float:
        return 0.0 if self._began is None else trio.current_time() - self._began

    def _happened(self, event: ScenarioEvent) -> None:
        self.chronicle.entries.append(PlayedEvent(self._now(), event.text))

    def _miss(self, line: int, text: str) -> None:
        self.chronicle.misses.append(Miss(line, text))

    def _record(self, step: ControllerStep) -> bool:
        self.chronicle.saw(self._now(), step)
        return False  # watch until the end


async def _refusal(ask: Callable[[], Awaitable[object]]) -> tuple[str | None, str]:
    """Return the name and the text of a request's error; a lost answer is not a refusal."""
    try:
        await ask()
    except ApiError as error:
        return error.code.name, str(error)
    except OutcomeUnknown:
        return None, ""
    except GaveUp as error:
        return "GAVE_UP", str(error)
    except (ClusterUnreachable, WireError) as error:
        return "UNREACHABLE", str(error)
    return None, ""
