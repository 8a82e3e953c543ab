"""Draws znodes of topics and states that tools and operators rewrite, often more than once and during moves."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from simulator.actions.edits import EditState, EditTopic, StateEdit, TopicEdit
from simulator.actions.requests import Reassign
from simulator.actions.scene import Strike
from simulator.actions.znodes import NotifyIsrChange
from simulator.random_run.happenings import AtStep, Happening, InTurn
from simulator.random_run.requests import elsewhere
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment

_CHANCE_IN_A_MOVE: Final = 0.5
_CHANCE_OF_A_STATE: Final = 0.25
_CHANCE_TWICE: Final = 0.4
_CHANCE_TO_NOTIFY: Final = 0.5


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few edits for the time until `seconds`, half of them at a step of a move."""
    happenings: list[Happening] = []
    for _ in range(rng.randint(1, 4)):
        at, name = rng.uniform(0.5, seconds - 2), rng.choice(sorted(partitions))
        step = None
        if rng.random() < _CHANCE_IN_A_MOVE:
            moment = rng.choice((Moment.DECIDED, Moment.COMMITTED))
            step = AtStep(rng.choice(("U1", "ISR", "B4", "B6", "elect")), moment, rng.choice((0.0, 0.001, 0.1)))
            happenings.append(Happening(at, None, Reassign({name: elsewhere(rng, settings, partitions[name])})))
        happenings.append(Happening(at, step, _edit(rng, name)))
        if rng.random() < _CHANCE_TWICE:
            happenings.append(Happening(at + rng.choice((0.001, 0.02, 1.0)), None, _edit(rng, name)))
    return happenings


def draw_growth(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw a tool that gives a topic one partition after the other, the last of them shortly before `seconds`.

    By then a controller has read the topic once or more, and often none takes office afterwards, which would read it.
    """
    del settings
    grow = EditTopic(rng.choice(sorted(partitions)).rpartition("-")[0], TopicEdit.ONE_MORE)
    at = seconds - rng.uniform(0.1, 1.0)
    happenings = [Happening(at, None, grow)]
    for _ in range(rng.randint(1, 3)):
        at = max(at - rng.choice((0.05, 0.5, 2.0)) * rng.uniform(0.5, 1.5), 0.0)
        happenings.append(Happening(at, None, grow))
    return happenings


def _edit(rng: random.Random, name: str) -> Strike:
    if rng.random() > _CHANCE_OF_A_STATE:
        return EditTopic(name.rpartition("-")[0], rng.choice(tuple(TopicEdit)))
    # A deleted state begins again at leader epoch 0 if the controller dies, below the epochs in the brokers' logs.
    edit = rng.choice((StateEdit.TOUCHED, StateEdit.SMALLER_ISR))
    if rng.random() < _CHANCE_TO_NOTIFY:
        return InTurn((EditState(name, edit), NotifyIsrChange((name,))))
    return EditState(name, edit)
