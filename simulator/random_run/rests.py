"""Draws brokers that crash after the faults, so that what the others know of them is compared with the store."""

from __future__ import annotations

import random
from collections.abc import Mapping

from simulator.actions.processes import RestWithout
from simulator.random_run.happenings import Happening
from simulator.random_run.topology import Replicas
from simulator.settings import Settings


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a broker, or all the followers of a partition."""
    followers = rng.choice(sorted(partitions.values()))[1:]
    some = rng.choice((followers or settings.broker_ids[:1], (rng.choice(settings.broker_ids),)))
    return [Happening(rng.uniform(0.0, seconds / 2), None, RestWithout(some))]
