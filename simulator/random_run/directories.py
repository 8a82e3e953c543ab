"""Draws log directories that fail, one or all, and are mended or replaced, with or without a restart."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from simulator.actions.processes import Crash, FailDisk, MendDisk, Restart, Start
from simulator.actions.scene import CONTROLLER, LEADER_OF, SAME, Node, Strike
from simulator.random_run.faults import draw_optional_step
from simulator.random_run.happenings import AtStep, Happening, Lasting
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment

_CHANCE_AT_STEP: Final = 0.4
_CHANCE_NOTICED: Final = 0.5
_CHANCE_OF_CRASH: Final = 0.3


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few failures for the time until `seconds`, some with a crash of the controller that handles them."""
    happenings: list[Happening] = []
    for _ in range(rng.randint(1, 4)):
        at = rng.uniform(0.0, seconds - 2)
        who = rng.choice((rng.choice(settings.broker_ids), LEADER_OF + rng.choice(sorted(partitions))))
        step = draw_optional_step(rng, _CHANCE_AT_STEP)
        happenings.append(Happening(at, step, _failure(rng, who)))
        if rng.random() < _CHANCE_OF_CRASH:
            moment = rng.choice((Moment.DECIDED, Moment.COMMITTED, Moment.PUBLISHED))
            crash = Lasting(Crash(CONTROLLER), rng.uniform(0.5, 6.0), (Start(SAME),))
            happenings.append(Happening(at, AtStep(rng.choice(("elect", "leave")), moment), crash))
    return happenings


def _failure(rng: random.Random, who: Node) -> Strike:
    directory = rng.choice((None, 0, 0, 1, 1))
    fault = FailDisk(who, directory, noticed=rng.random() < _CHANCE_NOTICED)
    ends: tuple[tuple[Strike, ...], ...] = (
        (MendDisk(SAME),),
        (MendDisk(SAME), Restart(SAME)),
        # It fails again after it was mended under the live broker.
        (MendDisk(SAME), FailDisk(SAME, directory, noticed=True)),
        (Crash(SAME), Start(SAME, wipe=True)),
        # The second directory fails after the first.
        (FailDisk(SAME, None, noticed=True),),
    )
    return Lasting(fault, rng.choice((0.05, 1.0, 6.0)) * rng.uniform(0.5, 1.5), rng.choice(ends))
