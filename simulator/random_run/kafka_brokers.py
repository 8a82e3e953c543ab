"""Draws what random runs have in clusters of Apache Kafka's brokers, and only there."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from attrs import evolve

from simulator.actions.placements import PlaceTopic
from simulator.actions.requests import CreateTopic
from simulator.kafka.releases import RELEASES
from simulator.random_run import topology
from simulator.random_run.features import Chosen, Feature
from simulator.random_run.happenings import Happening
from simulator.random_run.topology import Replicas
from simulator.scheduling import generator
from simulator.settings import Settings

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


FEATURES: Final = (Feature("topics of brokers", draw_topics, 0.3),)


def chosen(seed: int, others: tuple[Chosen, ...]) -> tuple[Chosen, ...]:
    """Return what a seed has drawn of the features there, given those that it has drawn of all clusters'."""
    own = [each for each in FEATURES if generator(seed, f"lot of {each.name}").random() < each.chance]
    suited = [each for each in others if each.feature.name not in _UNSUITED]
    return (*suited, *(Chosen(each, 1) for each in own))
