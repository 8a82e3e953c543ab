"""Small, realistic bugs to plant in the product, one at a time, which random runs must find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final

import pytest

from simulator.random_run.plan import RunPlan, draw
from tests.simulation.planted import (
    brokers,
    channels,
    classics,
    closed,
    damage,
    elections,
    failures,
    isrs,
    kafkas,
    moves,
    node,
    rollouts,
    rounds,
    topics,
)

Plant = Callable[[pytest.MonkeyPatch], None]

KAFKAS: Final = "Kafka's brokers"
ROLLOUTS: Final = "rollouts"
FAILURES: Final = "failing services"

AREAS: Final[Mapping[str, tuple[Plant, ...]]] = {
    "classics": classics.BUGS,
    "elections": elections.BUGS,
    "moves": moves.BUGS,
    "topics": topics.BUGS,
    "brokers": brokers.BUGS,
    FAILURES: failures.BUGS,
    "ISRs": isrs.BUGS,
    "channels": channels.BUGS,
    "node": node.BUGS,
    "rounds": rounds.BUGS,
    ROLLOUTS: rollouts.BUGS,
    "damage and sizes": damage.BUGS,
    "closed records": closed.BUGS,
    KAFKAS: kafkas.BUGS,
}

BUGS: Final[Mapping[str, Plant]] = {plant.__name__: plant for plants in AREAS.values() for plant in plants}

AREA_OF: Final[Mapping[str, str]] = {plant.__name__: area for area, plants in AREAS.items() for plant in plants}


def draws_of(name: str) -> tuple[bool, tuple[str, ...]]:
    """Return which runs have to find a bug: with Kafka's brokers or not, and what all of them have."""
    area = AREA_OF[name]
    return area == KAFKAS, (area,) if area in (ROLLOUTS, FAILURES) else ()


def plan_of(name: str) -> Callable[[int], RunPlan]:
    """Return what draws the plans of the runs that have to find a bug."""
    kafkas, always = draws_of(name)
    return partial(draw, kafkas=kafkas, always=always)


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant a bug for the duration of the block."""
    with pytest.MonkeyPatch.context() as patch:
        BUGS[name](patch)
        yield
