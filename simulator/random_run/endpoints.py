"""Draws brokers that listen on another port, at once or from their next start on."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from simulator.actions.processes import ChangeEndpoint, Crash, Start
from simulator.actions.scene import LEADER_OF, SAME, Node, Strike
from simulator.random_run.faults import draw_optional_step
from simulator.random_run.happenings import Happening, InTurn, Lasting, Leave
from simulator.random_run.topology import Replicas
from simulator.settings import Settings

_CHANCE_AT_STEP: Final = 0.5


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few changes of endpoints for the time until `seconds`."""
    happenings = []
    for _ in range(rng.randint(1, 4)):
        who = rng.choice((rng.choice(settings.broker_ids), LEADER_OF + rng.choice(sorted(partitions))))
        step = draw_optional_step(rng, _CHANCE_AT_STEP)
        happenings.append(Happening(rng.uniform(0.0, seconds - 1), step, _change(rng, who)))
    return happenings


def _change(rng: random.Random, who: Node) -> Strike:
    pause = rng.choice((0.0, 0.1, 3.0)) * rng.uniform(0.5, 1.5)
    return rng.choice(
        (
            ChangeEndpoint(who),
            # Twice: the second before everybody has heard of the first.
            Lasting(ChangeEndpoint(who), pause, (InTurn((ChangeEndpoint(SAME),)),)),
            Lasting(Crash(who, noticed=rng.random() < 0.5), pause, (Start(SAME, elsewhere=True),)),  # noqa: PLR2004  as often
            Leave(who, pause, elsewhere=True),
        )
    )
