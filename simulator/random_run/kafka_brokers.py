"""Draws what random runs have in clusters of Apache Kafka's brokers."""

from __future__ import annotations

import random
from typing import Final

from attrs import evolve

from simulator.kafka.releases import RELEASES
from simulator.random_run.features import Feature
from simulator.settings import Settings

_UNSUITED: Final = frozenset({"lost disks"})
"""The features that make no difference: a broker of Kafka's does not tell that it has lost its disk."""


def draw_settings(rng: random.Random, settings: Settings) -> Settings:
    """Draw the releases of the brokers, often different ones."""
    releases = rng.sample(sorted(RELEASES), rng.randint(1, len(RELEASES)))
    return evolve(settings, releases=tuple(releases))


def suits(feature: Feature) -> bool:
    """Return whether a feature can make a difference there."""
    return feature.name not in _UNSUITED
