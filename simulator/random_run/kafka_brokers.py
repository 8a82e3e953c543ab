"""Draws what random runs have in clusters of Apache Kafka's brokers, and only there."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from attrs import evolve

from simulator.actions.listeners import RenameListener
from simulator.actions.placements import PlaceTopic
from simulator.actions.processes import Crash, Start
from simulator.actions.requests import CreateTopic
from simulator.actions.scene import CONTROLLER, SAME
from simulator.kafka.releases import RELEASES
from simulator.random_run import topology
from simulator.random_run.faults import draw_optional_step
from simulator.random_run.features import Chosen, Feature
from simulator.random_run.happenings import Happening, Lasting
from simulator.random_run.topology import Replicas
from simulator.scheduling import generator
from simulator.settings import Settings

_CHANCE_OF_ALL: Final = 0.4
_CHANCE_AT_STEP: Final = 0.3
_CHANCE_OF_TAKEOVER: Final = 0.5

_UNSUITED: Final = frozenset({"lost disks", "failing services"})
"""The features that make no difference, or do not exist there.

A Kafka broker does not tell that it has lost its disk, and carries out orders itself.
"""


def draw_settings(rng: random.Random, settings: Settings) -> Settings:
    """Draw the releases of the brokers, often different ones."""
    releases = rng.sample(sorted(RELEASES), rng.randint(1, len(RELEASES)))
    return evolve(settings, releases=tuple(releases))


def draw_topics(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw a topic that a broker creates in the time until `seconds`, perhaps with replicas on controllers."""
    del partitions
    ids = (*settings.broker_ids, *settings.controller_ids)
    factor = rng.choice((1, 2, 3))
    rows = tuple(topology.draw_replicas(rng, ids, factor) for _ in range(rng.choice((1, 1, 2, 5))))
    topic = CreateTopic(f"auto{rng.randrange(1000)}", rows)
    return [Happening(rng.uniform(0.2, seconds - 2), None, PlaceTopic((topic,)))]


def draw_lost_listeners(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw brokers that lack the controllers' listener for a while, all or some, perhaps before the next controller."""
    del partitions
    happenings = []
    for _ in range(rng.randint(1, 3)):
        ids = tuple(settings.broker_ids)
        some = ids if rng.random() < _CHANCE_OF_ALL else tuple(rng.sample(ids, rng.randint(1, len(ids))))
        at = rng.uniform(0.3, seconds - 2)
        lasts, again = rng.choice((0.5, 4.0, 12.0)) * rng.uniform(0.5, 1.5), RenameListener(some, back=True)
        lost = Lasting(RenameListener(some), lasts, (again,))
        happenings.append(Happening(at, draw_optional_step(rng, _CHANCE_AT_STEP), lost))
        if rng.random() < _CHANCE_OF_TAKEOVER:
            crash = Lasting(Crash(CONTROLLER, noticed=True), rng.uniform(0.5, 6.0), (Start(SAME),))
            happenings.append(Happening(at + rng.choice((0.0, 0.5)), None, crash))
    return happenings


FEATURES: Final = (
    Feature("topics of brokers", draw_topics, 0.3),
    Feature("lost listeners", draw_lost_listeners, 0.3),
)


def chosen(seed: int, others: tuple[Chosen, ...]) -> tuple[Chosen, ...]:
    """Return what a seed has drawn of the features there, given those that it has drawn of all clusters'."""
    own = [each for each in FEATURES if generator(seed, f"lot of {each.name}").random() < each.chance]
    suited = [each for each in others if each.feature.name not in _UNSUITED]
    return (*suited, *(Chosen(each, 1) for each in own))
