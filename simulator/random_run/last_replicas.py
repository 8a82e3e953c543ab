"""Draws log directories that fail under the last members of ISRs, and that their live brokers then use again."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from simulator.actions.processes import FailDisk, KeepOutOfIsr, MendDisk
from simulator.actions.scene import LEADER_OF, SAME
from simulator.actions.znodes import NotifyLogDir
from simulator.disk import DIRECTORIES
from simulator.random_run.happenings import Happening, Lasting
from simulator.random_run.topology import Replicas
from simulator.settings import Settings

_SECONDS: Final = (2.5, 8.0)
"""The shortest and the longest failure: the broker and then the controller have to notice it."""


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few partitions without a usable replica in the ISR, for the time until `seconds`."""
    names = rng.sample(sorted(partitions), min(rng.randint(1, 3), len(partitions)))
    return [happening for name in names for happening in _loss(rng, settings, name, partitions[name], seconds)]


def _loss(rng: random.Random, settings: Settings, name: str, replicas: Replicas, seconds: float) -> list[Happening]:
    """Return what leaves only the leader in an ISR, the failure of its directory, and the end of that.

    The notification makes the controller repeat its orders; the answers say that the logs can be used again.
    """
    followers = replicas[1:]
    shrinks = settings.replica_lag_time * rng.uniform(0.5, 1.0) + 0.5 if followers else 0.0
    lasts = rng.uniform(*_SECONDS)
    at = rng.uniform(0.0, max(seconds - shrinks - lasts - 1, 0.5))
    directory = int(name.rpartition("-")[2]) % DIRECTORIES
    failure = FailDisk(LEADER_OF + name, directory, noticed=True)
    happenings = [Happening(at + shrinks, None, Lasting(failure, lasts, (MendDisk(SAME), NotifyLogDir(SAME))))]
    if followers:
        kept_out = Lasting(KeepOutOfIsr({name: followers}), shrinks + lasts + 2, (KeepOutOfIsr({name: ()}),))
        happenings.append(Happening(at, None, kept_out))
    return happenings
