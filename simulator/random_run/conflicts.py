"""Draws states that somebody writes again while a round about many partitions is committed in small chunks."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from attrs import evolve

from simulator.actions.edits import EditState, StateEdit
from simulator.actions.processes import Crash, Start
from simulator.actions.scene import SAME
from simulator.random_run.happenings import AtStep, Happening, InTurn, Lasting
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment

_CHANCE_OF_SMALL_CHUNKS: Final = 0.2


def draw_chunks(rng: random.Random, settings: Settings) -> Settings:
    """Draw in some runs that controllers commit few operations together, so that rounds have many chunks."""
    if rng.random() >= _CHANCE_OF_SMALL_CHUNKS:
        return settings
    return evolve(settings, chunk_operations=rng.choice((1, 2, 3, 5, 10, 30)))


def draw_settings(rng: random.Random, settings: Settings) -> Settings:
    """Draw that controllers commit the states of one to three partitions together."""
    return evolve(settings, chunk_operations=rng.randint(1, 3))


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw brokers that die, and states that are written again right before the controller's own writes."""
    happenings: list[Happening] = []
    for _ in range(rng.randint(1, 3)):
        broker_id = rng.choice(settings.broker_ids)
        held = sorted(name for name, replicas in partitions.items() if broker_id in replicas)
        if not held:
            continue
        at = rng.uniform(0.3, seconds - 2)
        names = rng.sample(held, min(rng.randint(1, 4), len(held)))
        touched = InTurn(tuple(EditState(name, StateEdit.TOUCHED) for name in names))
        crash = Lasting(Crash(broker_id, noticed=True), rng.uniform(0.5, 4.0), (Start(SAME),))
        happenings.append(Happening(at, AtStep(rng.choice(("elect", "leave")), Moment.DECIDED), touched))
        happenings.append(Happening(at, None, crash))
    return happenings
