"""Draws topics whose partitions have the same replicas, of which some brokers cannot use all.

A controller decides once about partitions that are alike; those with a replica in a failed directory are not.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Final

from simulator.actions.processes import Crash, FailDisk, MendDisk, Start
from simulator.actions.requests import CreateTopic, Elect
from simulator.actions.scene import SAME
from simulator.disk import DIRECTORIES
from simulator.random_run.happenings import Happening, Lasting, Leave
from simulator.random_run.topology import Replicas, draw_replicas
from simulator.settings import Settings
from transport.messages import ElectionType

_CHANCE_OF_CLEAN_STOP: Final = 0.3


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few such topics, in each case a directory that fails, and the end of the broker that leads all of it."""
    del partitions
    return [each for number in range(rng.randint(1, 3)) for each in _topic(rng, settings, f"alike{number}", seconds)]


def _topic(rng: random.Random, settings: Settings, name: str, seconds: float) -> Iterator[Happening]:
    replicas = draw_replicas(rng, settings.broker_ids, rng.choice((2, 3, 3)))
    count = rng.randint(3, 10)
    created, failed = rng.uniform(0.1, 0.5), rng.uniform(0.5, seconds / 2)
    gone, seconds_gone = failed + rng.uniform(0.3, 3.0), rng.uniform(0.5, 4.0)
    disk = FailDisk(rng.choice((replicas[1], replicas[-1])), rng.randrange(DIRECTORIES), noticed=True)
    crash = Lasting(Crash(replicas[0], noticed=True), seconds_gone, (Start(SAME),))
    is_clean = rng.random() < _CHANCE_OF_CLEAN_STOP
    yield Happening(created, None, CreateTopic(name, (replicas,) * count))
    yield Happening(failed, None, Lasting(disk, seconds - failed, (MendDisk(SAME),)))
    yield Happening(gone, None, Leave(replicas[0], seconds_gone) if is_clean else crash)
    elected = Elect(ElectionType.PREFERRED, tuple(f"{name}-{number}" for number in range(count)))
    yield Happening(gone + seconds_gone + rng.uniform(0.1, 2.0), None, elected)
