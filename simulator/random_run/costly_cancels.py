"""Draws cancels that would leave the ISR too small: original replicas are down, and a new one has joined it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from simulator.actions.processes import Crash, Start
from simulator.actions.requests import Reassign
from simulator.actions.scene import SAME
from simulator.random_run.happenings import AtStep, Happening, Lasting
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment

_BEGUN: Final = AtStep("U1", Moment.COMMITTED)


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a move to two new replicas, one of which dies at once, crashes of original replicas, and the cancel."""
    name = rng.choice(sorted(partitions))
    original = partitions[name]
    others = [broker_id for broker_id in settings.broker_ids if broker_id not in original]
    if len(others) < 2:  # noqa: PLR2004  one that joins the ISR, and one that keeps the move from its end
        return []
    joins, dies = rng.sample(others, 2)
    at = rng.uniform(0.5, seconds / 2)
    happenings = [Happening(at, None, Reassign({name: (joins, dies)})), _crash(rng, at, dies, _BEGUN)]
    happenings += [_crash(rng, at + rng.uniform(0.5, 2.0), broker_id) for broker_id in original[1:]]
    return [*happenings, Happening(at + rng.uniform(2.0, 5.0), None, Reassign({name: None}))]


def _crash(rng: random.Random, at: float, broker_id: int, step: AtStep | None = None) -> Happening:
    return Happening(at, step, Lasting(Crash(broker_id, noticed=True), rng.uniform(6.0, 12.0), (Start(SAME),)))
