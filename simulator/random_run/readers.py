"""Draws an administrator that looks: lists of reassignments and descriptions of topics, at any time and at steps."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from simulator.actions.requests import DescribeTopics, ListReassignments
from simulator.random_run.happenings import AtStep, Happening
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment

_CHANCE_AT_STEP: Final = 0.5
_ROUNDS: Final = ("U1", "B6", "topics", "grow", "mark", "remove", "order", "elect", "loaded")
"""Rounds that change what the answers show."""


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw some reads for the time until `seconds`."""
    del settings, partitions
    return [_read(rng, rng.uniform(0.5, seconds - 1)) for _ in range(rng.choice((0, 2, 4, 8)))]


def _read(rng: random.Random, at: float) -> Happening:
    step = None
    if rng.random() < _CHANCE_AT_STEP:
        moment = rng.choice((Moment.DECIDED, Moment.COMMITTED))
        step = AtStep(rng.choice(_ROUNDS), moment, rng.choice((0.0, 0.001, 0.01)))
    return Happening(at, step, rng.choice((ListReassignments(), DescribeTopics())))
