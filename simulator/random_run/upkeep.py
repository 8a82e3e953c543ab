"""Draws changes of leadership in a random run: controlled shutdowns of brokers, elections, and their settings."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from attrs import evolve

from simulator.actions.requests import Elect
from simulator.actions.scene import LEADER_OF
from simulator.random_run.happenings import AtStep, Happening, Leave
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment
from transport.messages import ElectionType

_CHANCE_OF_UNCLEAN: Final = 0.05
_CHANCE_AT_STEP: Final = 0.3
_CHANCE_OF_ALL: Final = 0.4


def draw_settings(rng: random.Random, settings: Settings) -> Settings:
    """Draw whether unclean elections are allowed, and how often leadership is rebalanced to preferred leaders."""
    return evolve(
        settings,
        unclean_leader_election=rng.random() < _CHANCE_OF_UNCLEAN,
        leader_rebalance_interval=rng.choice((None, 2, 7)),
    )


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few shutdowns of brokers and a few elections for the time until `seconds`."""
    names = list(partitions)
    stops = [_stop(rng, settings, names, rng.uniform(0.0, seconds - 2)) for _ in range(rng.choice((0, 1, 1, 2)))]
    elections = [_elect(rng, names, rng.uniform(0.5, seconds - 1)) for _ in range(rng.choice((0, 1, 2)))]
    return [*stops, *elections]


def _stop(rng: random.Random, settings: Settings, names: list[str], at: float) -> Happening:
    who = rng.choice((rng.choice(settings.broker_ids), LEADER_OF + rng.choice(names)))
    step = None
    if rng.random() < _CHANCE_AT_STEP:
        step = AtStep(rng.choice(("A1", "B3", "B4", "elect", "shrink")), Moment.COMMITTED, rng.choice((0.0, 0.01)))
    return Happening(at, step, Leave(who, rng.uniform(0.5, 8.0)))


def _elect(rng: random.Random, names: list[str], at: float) -> Happening:
    kind = rng.choice((ElectionType.PREFERRED, ElectionType.PREFERRED, ElectionType.UNCLEAN))
    wanted = None if rng.random() < _CHANCE_OF_ALL else (rng.choice(names),)
    return Happening(at, None, Elect(kind, wanted))
