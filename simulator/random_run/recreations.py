"""Draws topics that operators remove from the store by hand and create again, mostly while a broker is away."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from simulator.actions.processes import Crash, Pause, Start, Wake
from simulator.actions.recreations import RecreateTopic
from simulator.actions.requests import CreateTopic
from simulator.actions.scene import SAME, Strike
from simulator.random_run import topology
from simulator.random_run.happenings import Happening, Lasting
from simulator.random_run.topology import Replicas
from simulator.settings import Settings

_CHANCE_OF_ABSENCE: Final = 0.8
_CHANCE_OF_OTHER_REPLICAS: Final = 0.3


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a topic that is created again in the time until `seconds`.

    A broker that is away meanwhile returns with the data of the old topic, and gets its orders about both at once.
    """
    name = rng.choice(sorted(partitions)).rpartition("-")[0]
    at, away = rng.uniform(0.5, seconds - 4), rng.uniform(1.0, 8.0)
    happenings = [
        Happening(at + rng.choice((0.1, 1.0)) * rng.random() * away, None, _again(rng, settings, partitions, name))
    ]
    if rng.random() < _CHANCE_OF_ABSENCE:
        broker = rng.choice(partitions[f"{name}-0"])
        happenings.append(Happening(at, None, _absence(rng, broker, away)))
    return happenings


def _absence(rng: random.Random, broker: int, seconds: float) -> Strike:
    if rng.random() < 0.7:  # noqa: PLR2004  mostly
        return Lasting(Crash(broker, noticed=rng.random() < 0.7), seconds, (Start(SAME),))  # noqa: PLR2004
    return Lasting(Pause(broker, keeps_session=True), seconds, (Wake(SAME),))


def _again(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], name: str) -> RecreateTopic:
    if rng.random() < _CHANCE_OF_OTHER_REPLICAS:
        return RecreateTopic((topology.draw_topic(rng, settings, name),))
    rows = tuple(row for partition, row in partitions.items() if partition.rpartition("-")[0] == name)
    return RecreateTopic((CreateTopic(name, tuple(tuple(rng.sample(row, len(row))) for row in rows)),))
