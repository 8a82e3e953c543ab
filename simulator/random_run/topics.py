"""Draws topics that get more partitions in a random run, or are deleted and perhaps created again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Final

from attrs import evolve

from simulator.actions.processes import Crash, Start
from simulator.actions.requests import AddPartitions, DeleteTopic
from simulator.actions.scene import CONTROLLER, SAME, Action
from simulator.actions.znodes import MarkForDeletion
from simulator.random_run import topology
from simulator.random_run.happenings import AtStep, Happening, Lasting
from simulator.random_run.requests import ROUNDS
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment

_CHANCE_TO_GROW_AT_STEP: Final = 0.3
_CHANCE_OF_CRASH_AFTER_GROWTH: Final = 0.3

_CHANCE_AT_STEP: Final = 0.4
_CHANCE_OF_CRASH: Final = 0.7
_CHANCE_OF_NAMESAKE: Final = 0.6
_CHANCE_OF_MARKER: Final = 0.7

_ROUNDS: Final = ("delete", "stop", "deleted", "remove")


def draw_growth(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw a few topics that get more partitions in the time until `seconds`, some of them during a move."""
    del settings
    sizes = Counter(name.rpartition("-")[0] for name in partitions)
    happenings: list[Happening] = []
    for _ in range(rng.choice((1, 1, 2))):
        topic = rng.choice(sorted(sizes))
        step = None
        if rng.random() < _CHANCE_TO_GROW_AT_STEP:
            step = AtStep(rng.choice(("U1", "B6", "expel", "leave")), Moment.COMMITTED, rng.choice((0.0, 0.01)))
        grow = AddPartitions({topic: sizes[topic] + rng.randint(1, 3)})
        happenings.append(Happening(rng.uniform(0.5, seconds - 1), step, grow))
    if happenings and rng.random() < _CHANCE_OF_CRASH_AFTER_GROWTH:
        added = AtStep("grow", Moment.COMMITTED)
        at = rng.uniform(0.0, seconds - 2)
        happenings.append(Happening(at, added, Lasting(Crash(CONTROLLER), rng.uniform(0.5, 8.0), (Start(SAME),))))
    return happenings


def draw_deletions(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw the deletion of a topic at any time or at a step of a move, perhaps with a crash during it."""
    topic = rng.choice(sorted(partitions)).rpartition("-")[0]
    at = rng.uniform(0.5, seconds - 5)
    step = AtStep(rng.choice(ROUNDS), Moment.DECIDED) if rng.random() < _CHANCE_AT_STEP else None
    happenings = [Happening(at, step, DeleteTopic(topic))]
    if rng.random() < _CHANCE_OF_CRASH:
        who = CONTROLLER if rng.random() < 0.7 else rng.choice(settings.broker_ids)  # noqa: PLR2004  mostly
        seconds_dead = rng.uniform(0.5, 10.0)
        crash = Lasting(Crash(who, noticed=rng.random() < 0.5), seconds_dead, (Start(SAME),))  # noqa: PLR2004  as often
        happenings.append(Happening(at, AtStep(rng.choice(_ROUNDS), Moment.DECIDED, rng.choice((0.0, 0.01))), crash))
    while rng.random() < _CHANCE_OF_NAMESAKE:
        at += rng.uniform(0.0, 3.0)
        happenings.append(Happening(at, None, topology.draw_topic(rng, settings, topic)))
    return happenings


def draw_disabled(rng: random.Random, settings: Settings) -> Settings:
    """Let the controllers run with delete.topic.enable=false."""
    del rng
    return evolve(settings, delete_topic_enable=False)


def draw_deletions_in_vain(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw deletions of topics where none can be deleted: by markers, one of which the next controller finds."""
    del settings
    topics = sorted({name.rpartition("-")[0] for name in partitions})
    happenings = []
    for _ in range(rng.randint(1, 3)):
        topic, at = rng.choice(topics), rng.uniform(0.3, seconds - 1)
        asked: Action = MarkForDeletion(topic) if rng.random() < _CHANCE_OF_MARKER else DeleteTopic(topic)
        happenings.append(Happening(at, None, asked))
    if rng.random() < _CHANCE_OF_CRASH:
        crash = Lasting(Crash(CONTROLLER), rng.uniform(0.5, 8.0), (Start(SAME), MarkForDeletion(rng.choice(topics))))
        happenings.append(Happening(rng.uniform(0.3, seconds - 1), None, crash))
    return happenings
