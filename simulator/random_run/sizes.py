"""Draws topics whose partitions are moved, cancelled and deleted all at once, in more than one request to the store."""

from __future__ import annotations

import random
from collections.abc import Mapping
from math import inf
from typing import Final

from attrs import evolve

from simulator.actions.processes import Crash, Start
from simulator.actions.requests import AddPartitions, CreateTopic, DeleteTopic, Elect, Reassign
from simulator.actions.scene import CONTROLLER, SAME, Action
from simulator.random_run.happenings import AtStep, Happening, Lasting
from simulator.random_run.topology import Replicas, draw_replicas
from simulator.settings import Settings
from simulator.steps import Moment
from transport.messages import ElectionType
from transport.store.limits import LEAST_MAX_BUFFER

_LONGEST_NAME: Final = 249
_CHANCE_OF_DELETION: Final = 0.4
_CHANCE_OF_CRASH: Final = 0.5
_COUNTS: Final = {True: (180, 260), False: (20, 40)}
"""The least and the largest number of partitions, by whether links are fast."""

_COUNTS_OF_SMALL: Final = (50, 90)
"""The numbers of partitions whose moves together do not fit into the smallest request that a store may accept."""

_ROUNDS: Final = ("U1", "U1", "ISR", "B3", "B6", "B6", "mark", "delete", "stop", "create")


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a topic with a long name and hundreds of partitions, for the time until `seconds`."""
    del partitions
    # On a slow link, a fetch of hundreds of partitions with long names takes longer than a follower may lag.
    is_fast = settings.bytes_per_second == inf
    name = "large" + "x" * rng.choice((0, 100, _LONGEST_NAME - len("large")) if is_fast else (0,))
    return _draw(rng, settings, name, _COUNTS[is_fast], seconds)


def draw_limit(rng: random.Random, settings: Settings) -> Settings:
    """Draw a store that accepts only small requests."""
    del rng
    return evolve(settings, jute_maxbuffer=LEAST_MAX_BUFFER)


def draw_small(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw a topic that is large for a store with small requests, for the time until `seconds`."""
    del partitions
    return _draw(rng, settings, "wide", _COUNTS_OF_SMALL, seconds)


def _draw(
    rng: random.Random, settings: Settings, name: str, counts: tuple[int, int], seconds: float
) -> list[Happening]:
    """Draw a topic, and a few requests for most of its partitions at once."""
    factor = rng.choice((1, 2))
    rows = tuple(draw_replicas(rng, settings.broker_ids, factor) for _ in range(rng.randint(*counts)))
    at = rng.uniform(0.2, 1.0)
    happenings = [Happening(at, None, CreateTopic(name, rows))]
    for _ in range(rng.randint(1, 3)):
        at += rng.choice((0.05, 1.0, 3.0)) * rng.uniform(0.5, 1.5)
        happenings.append(Happening(min(at, seconds - 1), None, _request(rng, settings, name, rows)))
    if rng.random() < _CHANCE_OF_DELETION:
        step = AtStep(rng.choice(_ROUNDS), Moment.COMMITTED, rng.choice((0.0, 0.05)))
        happenings.append(Happening(1.0, rng.choice((None, step)), DeleteTopic(name)))
    if rng.random() < _CHANCE_OF_CRASH:
        moment = rng.choice((Moment.DECIDED, Moment.COMMITTED, Moment.PUBLISHED))
        crash = Lasting(Crash(CONTROLLER), rng.uniform(0.5, 4.0), (Start(SAME),))
        happenings.append(Happening(0.5, AtStep(rng.choice(_ROUNDS), moment), crash))
    return happenings


def _request(rng: random.Random, settings: Settings, name: str, rows: tuple[Replicas, ...]) -> Action:
    numbers = sorted(rng.sample(range(len(rows)), rng.choice((len(rows), len(rows) // 2))))
    moves = {f"{name}-{number}": draw_replicas(rng, settings.broker_ids, len(rows[0])) for number in numbers}
    return rng.choice(
        (
            Reassign(moves),
            Reassign(moves),
            Reassign(dict.fromkeys(moves)),
            Elect(ElectionType.PREFERRED, tuple(moves)),
            AddPartitions({name: len(rows) + rng.randint(1, 200)}),
        )
    )
