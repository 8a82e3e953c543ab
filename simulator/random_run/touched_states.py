"""Draws states that somebody writes again, as they are, just before their leaders propose other ISRs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from simulator.actions.edits import EditState, StateEdit
from simulator.actions.processes import KeepOutOfIsr
from simulator.random_run.happenings import Happening, Lasting
from simulator.random_run.topology import Replicas
from simulator.settings import Settings

_BEFORE_RETURN: Final = (0.02, 0.2, 1.0)
"""Seconds between the write and the end of a follower's exclusion."""


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few partitions with a follower outside the ISR, which may return right after the write."""
    names = sorted(name for name, replicas in partitions.items() if len(replicas) > 1)
    some = rng.sample(names, min(rng.randint(1, 3), len(names)))
    return [happening for name in some for happening in _touched(rng, settings, name, partitions[name], seconds)]


def _touched(rng: random.Random, settings: Settings, name: str, replicas: Replicas, seconds: float) -> list[Happening]:
    shrinks = settings.replica_lag_time * rng.uniform(0.5, 1.0) + 0.5
    returns = shrinks + rng.choice(_BEFORE_RETURN)
    at = rng.uniform(0.0, max(seconds - returns - 0.5, 0.5))
    kept_out = Lasting(KeepOutOfIsr({name: (rng.choice(replicas[1:]),)}), returns, (KeepOutOfIsr({name: ()}),))
    touched = EditState(name, StateEdit.TOUCHED)
    return [Happening(at, None, kept_out), Happening(at + shrinks, None, touched)]
