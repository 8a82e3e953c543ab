"""Executes the happenings of a plan on a simulated cluster."""

from __future__ import annotations

from contextlib import suppress

import trio
from attrs import frozen

from simulator.actions.scene import Action, CannotBeDone, Request
from simulator.actions.znodes import NotifyIsrChange, NotifyLogDir, WriteElection
from simulator.cluster import SimulatedCluster
from simulator.random_run.coverage import Coverage
from simulator.random_run.happenings import Happening
from simulator.random_run.scene import RunScene
from simulator.steps import ControllerStep


@frozen
class PlanExecution:
    """Carries out a plan. Actions that take time run in `nursery`, which is cancelled when the faults end."""

    cluster: SimulatedCluster
    nursery: trio.Nursery
    coverage: Coverage
    began: float

    async def await_and_do(self, happening: Happening) -> None:
        """Wait for the time of a happening, and carry it out then or at its step."""
        await trio.sleep_until(self.began + happening.at)
        wanted = happening.step
        if wanted is None:
            self._do(happening.action, None)
            return

        def matches(step: ControllerStep) -> bool:
            return (step.round, step.moment) == (wanted.round, wanted.moment)

        def strike(step: ControllerStep) -> None:
            # The faults have ended; the step came too late.
            if self.nursery.cancel_scope.cancel_called:
                return
            if wanted.delay:
                self.nursery.start_soon(self._later, wanted.delay, happening.action, step)
            else:
                self._do(happening.action, step)

        self.cluster.at(matches, strike)

    async def _later(self, seconds: float, action: Action, step: ControllerStep) -> None:
        await trio.sleep(seconds)
        self._do(action, step)

    def _do(self, action: Action, step: ControllerStep | None) -> None:
        """Carry out an action now, within a controller's step if there is one."""
        scene = RunScene(self.cluster, step=step, nursery=self.nursery, coverage=self.coverage)
        if isinstance(action, Request | WriteElection):
            # An administrator waits for the answer, so each request has a task of its own.
            self.nursery.start_soon(scene.ask, action)
            return
        if isinstance(action, NotifyIsrChange | NotifyLogDir):
            self.coverage.count("notifications by hand")
        with suppress(CannotBeDone):
            action.strike(scene)
