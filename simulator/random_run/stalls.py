"""Draws processes whose event loop stands still for a while, and clocks that jump."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from attrs import define

from simulator.actions.processes import Skew, Suspend, Wake
from simulator.actions.scene import CONTROLLER, LEADER_OF, SAME, Node, Strike
from simulator.random_run.faults import draw_optional_step
from simulator.random_run.happenings import Happening, Lasting
from simulator.random_run.topology import Replicas
from simulator.settings import Settings

_CHANCE_AT_STEP: Final = 0.6
_JUMPS: Final = (-86_400.0, -60.0, -1.0, 0.0, 1.0, 60.0, 86_400.0)
"""Errors of a wall clock, in seconds."""


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few stalls and jumps for the time until `seconds`."""
    stalls = _Stalls(rng, settings, sorted(partitions))
    return [stalls.happening(rng.uniform(0.0, seconds - 2)) for _ in range(rng.randint(1, 4))]


@define
class _Stalls:
    rng: random.Random
    settings: Settings
    partitions: list[str]

    def happening(self, at: float) -> Happening:
        """Return a stall or a jump at that time, or at a step from then on."""
        step = draw_optional_step(self.rng, _CHANCE_AT_STEP)
        (make,) = self.rng.choices((self._slow_handler, self._long_stop, self._jump), (5, 2, 2))
        return Happening(at, step, make())

    def _slow_handler(self) -> Strike:
        """Return a stall as of a slow handler or of a long garbage collection, which heartbeats survive."""
        seconds = self.rng.choice((0.1, 0.5, 3.0)) * self.rng.uniform(0.5, 1.5)
        return Lasting(Suspend(self._anyone()), seconds, (Wake(SAME),))

    def _long_stop(self) -> Strike:
        """Return a stop about as long as a session lasts without heartbeats."""
        seconds = self.settings.session_timeout * self.rng.uniform(0.5, 2.0)
        return Lasting(Suspend(self._anyone(), loses_session=True), seconds, (Wake(SAME),))

    def _jump(self) -> Strike:
        return Skew({self._anyone(): self.rng.choice(_JUMPS)})

    def _anyone(self) -> Node:
        nodes = (*self.settings.broker_ids, *self.settings.controller_ids)
        leader = LEADER_OF + self.rng.choice(self.partitions)
        return self.rng.choice((CONTROLLER, CONTROLLER, leader, self.rng.choice(nodes)))
