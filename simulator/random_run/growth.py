"""Draws the topics that get more partitions in a random run, perhaps with a crash of the controller."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from simulator.actions.processes import Crash, Start
from simulator.actions.requests import AddPartitions, CreateTopic
from simulator.actions.scene import CONTROLLER, SAME
from simulator.random_run.happenings import AtStep, Happening, Lasting
from simulator.steps import Moment

_CHANCE_AT_STEP: Final = 0.3
_CHANCE_OF_CRASH: Final = 0.3


def draw(rng: random.Random, topics: Sequence[CreateTopic], seconds: float) -> list[Happening]:
    """Draw a few topics that get more partitions in the time until `seconds`, some of them during a move."""
    happenings: list[Happening] = []
    for _ in range(rng.choice((0, 0, 1, 2))):
        topic = rng.choice(topics)
        step = None
        if rng.random() < _CHANCE_AT_STEP:
            step = AtStep(rng.choice(("U1", "B6", "expel", "shrink")), Moment.COMMITTED, rng.choice((0.0, 0.01)))
        grow = AddPartitions({topic.name: len(topic.assignment) + rng.randint(1, 3)})
        happenings.append(Happening(rng.uniform(0.5, seconds - 1), step, grow))
    if happenings and rng.random() < _CHANCE_OF_CRASH:
        added = AtStep("grow", Moment.COMMITTED)
        at = rng.uniform(0.0, seconds - 2)
        happenings.append(Happening(at, added, Lasting(Crash(CONTROLLER), rng.uniform(0.5, 8.0), (Start(SAME),))))
    return happenings
