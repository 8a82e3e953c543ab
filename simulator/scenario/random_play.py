"""Plays a scenario whose events do not wait for each other: as a random run, whose plan it is."""

from __future__ import annotations

import trio
from attrs import define, field

from simulator.actions.scene import Action
from simulator.cluster import SimulatedCluster
from simulator.random_run.run import run
from simulator.random_run.spectator import Spectator
from simulator.scenario import expectations
from simulator.scenario.disorder import plan_of
from simulator.scenario.model import Scenario
from simulator.scenario.outcome import Chronicle, Miss, PlayedEvent, ScenarioOutcome
from simulator.scenario.writer import write_action
from simulator.steps import ControllerStep
from simulator.trace import Trace


def play(scenario: Scenario, seed: int, trace: Trace) -> ScenarioOutcome:
    """Run a scenario in a trio run of its own, to its end or its first violation."""
    recorder = _Recorder(scenario)
    outcome = run(plan_of(scenario, seed), trace=trace, spectator=recorder)
    return recorder.outcome(seed, trace, None if outcome.violation is None else str(outcome.violation))


@define(eq=False)
class _Recorder(Spectator):
    """Writes down what happens."""

    scenario: Scenario
    chronicle: Chronicle = field(factory=Chronicle)
    _cluster: SimulatedCluster | None = field(default=None, init=False)
    _began: float = field(default=0.0, init=False)

    def begins(self, cluster: SimulatedCluster) -> None:
        """Begin to count time, and to record the controllers' commits."""
        self._cluster, self._began = cluster, trio.current_time()
        cluster.steps.watch(self._record)

    def acts(self, action: Action) -> None:
        """Record an event of the scenario."""
        self._add(write_action(action))

    def refused(self, text: str) -> None:
        """Record a refusal."""
        self._add(f"refused: {text}")

    def settled(self, cluster: SimulatedCluster) -> None:
        """Compare the end with what the scenario expects."""
        expected = self.scenario.expect
        self.chronicle.expectations += expectations.count(expected)
        for text in expectations.misses(expected, cluster, self.chronicle):
            self.chronicle.misses.append(Miss(self.scenario.expect_line, text))

    def outcome(self, seed: int, trace: Trace, violation: str | None) -> ScenarioOutcome:
        """Return the outcome of the run."""
        cluster = self._cluster
        durable = None if cluster is None else cluster.durable
        states = [durable.state(tp) for tp, _ in durable.partitions()] if durable else []
        return ScenarioOutcome(
            self.scenario.path,
            self.scenario.variant,
            seed,
            self.chronicle,
            violation,
            tuple(state for state in states if state is not None),
            None if cluster is None else cluster.active_controller,
            cluster.load.acknowledged if cluster else 0,
            max(trace.now - self._began, 0.0),
            trace,
        )

    def _record(self, step: ControllerStep) -> bool:
        self.chronicle.saw(trio.current_time() - self._began, step)
        return False  # watch until the end

    def _add(self, text: str) -> None:
        self.chronicle.entries.append(PlayedEvent(trio.current_time() - self._began, text))
