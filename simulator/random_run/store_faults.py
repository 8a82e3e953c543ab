"""Draws faults of the store: no leader for a while, slow commits, lost answers, lag at a failover, away at a start."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final

from attrs import define, evolve

from simulator.actions.processes import Crash, FailDisk, MendDisk, Restart, Start, Suspend, Wake
from simulator.actions.scene import CONTROLLER, LEADER_OF, SAME, STANDBY, Node, Strike
from simulator.actions.sessions import (
    AtCommit,
    Depose,
    Disconnect,
    Expire,
    Lag,
    LoseQuorum,
    Reconnect,
    RegainQuorum,
    SlowCommits,
    SlowStore,
    lose_answer,
)
from simulator.random_run.faults import draw_kinds
from simulator.random_run.happenings import Happening, InTurn, Lasting, Leave
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from transport.store import paths

_CHANCE_AT_STEP: Final = 0.5

_WRITTEN: Final = (
    paths.CONTROLLER,
    paths.CONTROLLER_EPOCH,
    paths.BROKER_IDS,
    paths.TOPICS,
    paths.TOPICS,
    paths.DELETE_TOPICS,
    paths.STRAYS,
    "/config",
    "",
)
"""Znodes below which a controller writes; "" stands for all."""


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few faults for the time until `seconds`."""
    maker = _Maker(rng, settings, sorted(partitions))
    return draw_kinds(rng, maker.kinds(), seconds, (1, 4), _CHANCE_AT_STEP)


@define
class _Maker:
    rng: random.Random
    settings: Settings
    partitions: list[str]

    def kinds(self) -> tuple[tuple[float, Callable[[], Strike]], ...]:
        """Return the kinds of faults, with their weights."""
        ensemble = ((3, self._no_leader), (2, self._slow_commits), (2, self._lag_at_failover))
        starts = ((1, self._everybody_starts), (3, self._away_at_start))
        sessions = ((4, self._lost_answer), (2, self._lost_registration), (1, self._lost_notification))
        holders = ((2, self._expired_while_away), (2, self._deposed_and_stopped))
        return *ensemble, *starts, *sessions, *holders

    # --- the ensemble -------------------------------------------------------------------------------------------

    def _no_leader(self) -> Strike:
        return Lasting(LoseQuorum(), self._around_timeout(), (RegainQuorum(),))

    def _slow_commits(self) -> Strike:
        slow = SlowCommits(self.rng.choice((0.05, 0.5, 3.0)) * self.rng.uniform(0.5, 1.5))
        return Lasting(slow, self.rng.uniform(0.5, 8.0), (SlowCommits(0),))

    def _lag_at_failover(self) -> Strike:
        """Return a crash of the controller whose successor may read from servers that lag behind."""
        servers = range(2, self.settings.servers + 1)
        if not servers:
            return self._no_leader()
        lags = {server: self.rng.choice((0.2, 1.0, 3.0)) * self.rng.uniform(0.5, 1.5) for server in servers}
        crash = InTurn((Lag(lags), Crash(CONTROLLER, noticed=True)))
        return Lasting(crash, self.rng.uniform(1.0, 8.0), (Start(SAME), Lag(dict.fromkeys(servers, 0.0))))

    def _everybody_starts(self) -> Strike:
        """Return a restart of all controllers, or of all nodes, before the store is back."""
        nodes = self.rng.choice((self.settings.controller_ids, self._nodes()))
        crash = InTurn((LoseQuorum(), Crash(nodes), Start(SAME)))
        return Lasting(crash, self._around_timeout(), (RegainQuorum(),))

    # --- answers ------------------------------------------------------------------------------------------------

    def _lost_answer(self) -> Strike:
        return self._losing(CONTROLLER, self.rng.choice(_WRITTEN))

    def _lost_registration(self) -> Strike:
        """Return a restart of a broker, which cannot know whether it is registered."""
        return InTurn((Crash(self._leader()), Start(SAME), self._losing(SAME, paths.BROKER_IDS)))

    def _lost_notification(self) -> Strike:
        """Return the loss of a log directory, of which the broker may notify the controller twice."""
        fail = FailDisk(self._leader(), self.rng.choice((0, 1)), noticed=True)
        lost = self._losing(SAME, paths.LOG_DIR_EVENT_NOTIFICATION)
        return Lasting(InTurn((fail, lost)), self.rng.uniform(1.0, 8.0), (MendDisk(SAME), Restart(SAME)))

    def _losing(self, who: Node, path: str) -> AtCommit:
        return lose_answer(who, applied=self.rng.random() < 0.5, path=path)  # noqa: PLR2004  as often

    # --- holders of sessions ------------------------------------------------------------------------------------

    def _expired_while_away(self) -> Strike:
        """Return the end of a session whose holder cannot be told, and returns soon."""
        ended = InTurn((Disconnect(self._anyone()), Expire(SAME)))
        return Lasting(ended, self.rng.uniform(0.05, 3.0), (Reconnect(SAME),))

    def _away_at_start(self) -> Strike:
        noticed = self.rng.random() < 0.7  # noqa: PLR2004  often
        start = InTurn((Crash(self._anyone(), noticed), Disconnect(SAME), Start(SAME)))
        return Lasting(start, self.rng.uniform(0.1, 10.0), (Reconnect(SAME),))

    def _deposed_and_stopped(self) -> Strike:
        """Return a shutdown of a controller that has lost its office, and may not know it."""
        leave = Leave(SAME, self.rng.uniform(0.5, 4.0))
        match self.rng.choice(("at once", "slow", "suspended")):
            case "at once":
                return InTurn((evolve(leave, nodes=CONTROLLER), Depose()))
            case "slow":
                deposed = InTurn((SlowStore({CONTROLLER: self.rng.uniform(0.2, 1.5)}), Depose()))
                return Lasting(deposed, self.rng.uniform(0.05, 1.0), (leave,))
            case _:
                deposed = InTurn((Suspend(CONTROLLER), Depose()))
                return Lasting(deposed, self.rng.uniform(0.2, 2.0), (leave, Wake(SAME)))

    def _around_timeout(self) -> float:
        return self.rng.choice((0.2, 0.7, 1.5)) * self.rng.uniform(0.5, 1.5) * self.settings.session_timeout

    def _anyone(self) -> Node:
        nodes: list[Node] = [CONTROLLER, STANDBY, self._leader(), self.rng.choice(self._nodes())]
        return self.rng.choice(nodes)

    def _leader(self) -> str:
        return LEADER_OF + self.rng.choice(self.partitions)

    def _nodes(self) -> tuple[int, ...]:
        return *self.settings.broker_ids, *self.settings.controller_ids
