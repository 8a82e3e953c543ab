"""The scene of a random run, in which a plan's happenings are carried out and counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import trio
from attrs import define, field, frozen

from controller.admin.active_controller import ClusterUnreachable
from simulator.actions.edits import EditState, EditTopic
from simulator.actions.processes import FailDisk
from simulator.actions.recreations import RecreateTopic
from simulator.actions.scene import SAME, Action, CannotBeDone, Node, Request, Scene, Strike
from simulator.actions.znodes import Allow, Damage, NotifyIsrChange, NotifyLogDir, WriteElection, WriteSettings
from simulator.administration import ADMIN
from simulator.cluster import SimulatedCluster
from simulator.process import ProcessState
from simulator.random_run.coverage import Coverage
from simulator.random_run.happenings import Happening, Lasting
from simulator.random_run.spectator import Spectator
from simulator.steps import ControllerStep
from transport.errors import ApiError
from transport.wire import WireError

_REFUSALS: Final = (ApiError, CannotBeDone, ClusterUnreachable, WireError)


@define
class RunScene(Scene):
    """A scene in which faults strike only running nodes."""

    coverage: Coverage = field(kw_only=True)
    spectator: Spectator = field(kw_only=True)

    def victims(self, action: Strike, wanted: Iterable[Node]) -> tuple[int, ...]:
        """Return the wanted nodes that run, or the `same` as before. Raises CannotBeDone if there are none."""
        found = self.nodes(wanted)
        if wanted != (SAME,):
            found = tuple(id_ for id_ in found if self._can_strike(action, id_))
        if not found:
            raise CannotBeDone("none of the nodes runs")
        self.chosen = found
        for id_ in found:
            self.coverage.strikes(action, self.cluster.process(id_), again=wanted == (SAME,))
        return found

    def count(self, what: str) -> None:
        """Count what happened."""
        self.coverage.count(what)

    def _can_strike(self, action: Strike, id_: int) -> bool:
        if isinstance(action, FailDisk) and self.cluster.brokers[id_].disk.has_failed:
            return False
        return self.cluster.process(id_).state is ProcessState.RUNNING

    async def ask(self, action: Request | Strike) -> None:
        """Carry out an administrator's action, and count its outcome."""
        self.coverage.asked(action)
        try:
            if isinstance(action, Request):
                await action.ask(self)
            else:
                action.strike(self)
        except _REFUSALS as refusal:
            self.coverage.count("requests refused")
            self.spectator.refused(str(refusal))
            self.cluster.trace.add("admin", ADMIN, f"was told {type(refusal).__name__}: {refusal}")
        else:
            self.coverage.accepted(action)


async def carry_out(
    happenings: Iterable[Happening],
    seconds: float,
    cluster: SimulatedCluster,
    coverage: Coverage,
    spectator: Spectator,
) -> None:
    """Carry out happenings, each at its time or its step, until the faults end after some seconds."""
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        execution = PlanExecution(cluster, nursery, coverage, spectator, began)
        for happening in happenings:
            nursery.start_soon(execution.await_and_do, happening)
        await trio.sleep_until(began + seconds)
        nursery.cancel_scope.cancel()


@frozen
class PlanExecution:
    """Carries out a plan. Actions that take time run in `nursery`, which is cancelled when the faults end."""

    cluster: SimulatedCluster
    nursery: trio.Nursery
    coverage: Coverage
    spectator: Spectator
    began: float

    async def await_and_do(self, happening: Happening) -> None:
        """Wait for the time of a happening, and carry it out then or at its step."""
        await trio.sleep_until(self.began + happening.at)
        wanted = happening.step
        if wanted is None:
            self._do(happening.action, None)
            return

        def matches(step: ControllerStep) -> bool:
            is_it = (step.round, step.moment) == (wanted.round, wanted.moment)
            return is_it and (wanted.partition is None or wanted.partition in map(str, step.subjects))

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
        seen = self.spectator
        scene = RunScene(self.cluster, step=step, nursery=self.nursery, coverage=self.coverage, spectator=seen)
        seen.acts(action)
        if isinstance(action, Request | WriteElection):
            # An administrator waits for the answer, so each request has a task of its own.
            self.nursery.start_soon(scene.ask, action)
            return
        if isinstance(action, Damage):
            self.coverage.damaged(action)
        if isinstance(action, Lasting) and isinstance(action.fault, Allow):
            self.coverage.count("znodes closed to controllers")
        if isinstance(action, EditTopic | EditState):
            self.coverage.count(f"edits by hand: {action.edit.value}")
        if isinstance(action, RecreateTopic):
            self.coverage.count("topics created again by hand")
        if isinstance(action, WriteSettings):
            self.coverage.count("settings written by hand")
        if isinstance(action, NotifyIsrChange | NotifyLogDir):
            self.coverage.count("notifications by hand")
        try:
            action.strike(scene)
        except CannotBeDone as reason:
            seen.refused(str(reason))
