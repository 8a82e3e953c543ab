"""The scene of a random run, which counts what really happens; its administrator accepts every refusal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import define, field

from controller.admin.active_controller import ClusterUnreachable
from simulator.actions.processes import FailDisk
from simulator.actions.scene import SAME, CannotBeDone, Node, Request, Scene, Strike
from simulator.administration import ADMIN
from simulator.process import ProcessState
from simulator.random_run.coverage import Coverage
from transport.errors import ApiError
from transport.wire import WireError

_REFUSALS: Final = (ApiError, ClusterUnreachable, WireError)


@define
class RunScene(Scene):
    """A scene in which faults strike only running nodes."""

    coverage: Coverage = field(kw_only=True)

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

    def _can_strike(self, action: Strike, id_: int) -> bool:
        if isinstance(action, FailDisk) and self.cluster.brokers[id_].disk.has_failed:
            return False
        return self.cluster.process(id_).state is ProcessState.RUNNING

    async def ask(self, action: Request | Strike) -> None:
        """Carry out an administrator's action, and count its outcome."""
        try:
            if isinstance(action, Request):
                await action.ask(self)
            else:
                action.strike(self)
        except _REFUSALS as refusal:
            self.coverage.count("requests refused")
            self.cluster.trace.add("admin", ADMIN, f"was told {type(refusal).__name__}: {refusal}")
        else:
            self.coverage.accepted(action)
