"""Draws znodes that belong to somebody else for a while: their ACLs forbid controllers to write or to read them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from simulator.actions.processes import Crash, Start
from simulator.actions.scene import CONTROLLER, SAME
from simulator.actions.znodes import Allow
from simulator.administration import partition_named
from simulator.random_run.faults import draw_optional_step
from simulator.random_run.happenings import Happening, Lasting
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from transport.store import paths
from transport.store.tree import Access

_CHANCE_AT_STEP: Final = 0.4
_CHANCE_OF_TAKEOVER: Final = 0.4
_CHANCE_OF_NO_ACCESS: Final = 0.4


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few closed znodes for the time until `seconds`, some of them while the next controller reads them."""
    happenings = []
    for _ in range(rng.randint(1, 4)):
        at = rng.uniform(0.3, seconds - 2)
        step = draw_optional_step(rng, _CHANCE_AT_STEP)
        path = _path(rng, settings, rng.choice(sorted(partitions)))
        access = Access.NONE if rng.random() < _CHANCE_OF_NO_ACCESS else Access.READ
        seconds_closed = rng.choice((0.1, 2.0, 8.0)) * rng.uniform(0.5, 1.5)
        closed = Lasting(Allow(path, access), seconds_closed, (Allow(path, Access.ALL),))
        happenings.append(Happening(at, step, closed))
        if rng.random() < _CHANCE_OF_TAKEOVER:
            crash = Lasting(Crash(CONTROLLER, noticed=True), rng.uniform(0.5, 6.0), (Start(SAME),))
            happenings.append(Happening(at + rng.choice((0.0, 0.5)), None, crash))
    return happenings


def _path(rng: random.Random, settings: Settings, name: str) -> str:
    tp, broker = partition_named(name), rng.choice(settings.broker_ids)
    return rng.choice(
        (
            *(paths.topic(tp.topic), paths.topic(tp.topic), paths.partition_state(tp), paths.partition_state(tp)),
            *(paths.topic_partitions(tp.topic), paths.partition(tp), paths.topic_config(tp.topic)),
            *(paths.reassignment(tp), paths.topic_reassignments(tp.topic)),
            *(paths.broker_config(broker), paths.broker_config(None), paths.REASSIGN_PARTITIONS),
            *(paths.PREFERRED_REPLICA_ELECTION, paths.storage_id(broker)),
        )
    )
