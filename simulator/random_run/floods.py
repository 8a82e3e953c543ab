"""Draws administrators that ask much at once: the same request many times, requests that undo each other, long ones."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from simulator.actions.requests import AddPartitions, AlterTopic, CreateTopic, DeleteTopic, Elect, Reassign
from simulator.actions.scene import Action
from simulator.random_run.faults import draw_optional_step
from simulator.random_run.happenings import Happening
from simulator.random_run.requests import elsewhere
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from transport.dynamic_configs import MIN_INSYNC_REPLICAS
from transport.messages import ElectionType

_CHANCE_AT_STEP: Final = 0.4
_CHANCE_OF_UNKNOWN: Final = 0.2


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a flood or two for the time until `seconds`: requests at one moment, or within 20 ms."""
    happenings = []
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.uniform(0.5, seconds - 1)
        step = draw_optional_step(rng, _CHANCE_AT_STEP)
        name = rng.choice(sorted(partitions))
        different = [_request(rng, settings, name, partitions) for _ in range(rng.randint(1, 4))]
        for _ in range(rng.choice((2, 2, 4, 8))):
            request = rng.choice(different)
            happenings.append(Happening(at + rng.choice((0.0, 0.0, rng.uniform(0.0, 0.02))), step, request))
    return happenings


def _request(rng: random.Random, settings: Settings, name: str, partitions: Mapping[str, Replicas]) -> Action:
    topic = name.rpartition("-")[0]
    if rng.random() < _CHANCE_OF_UNKNOWN:
        return Reassign({f"nowhere-{number}": (settings.broker_ids[0],) for number in range(rng.choice((5, 300)))})
    return rng.choice(
        (
            Reassign({name: elsewhere(rng, settings, partitions[name])}),
            Reassign({name: elsewhere(rng, settings, partitions[name])}),
            Reassign({name: partitions[name]}),
            Reassign({name: None}),
            Reassign({each: elsewhere(rng, settings, row) for each, row in partitions.items()}),
            Reassign(dict.fromkeys(partitions)),
            Elect(ElectionType.PREFERRED, None),
            Elect(ElectionType.UNCLEAN, (name,)),
            AddPartitions({topic: 1 + sum(each.rpartition("-")[0] == topic for each in partitions)}),
            AlterTopic({topic: {MIN_INSYNC_REPLICAS: rng.choice(("1", "2", None))}}),
            CreateTopic(f"flood{rng.randrange(3)}", (partitions[name],)),
            DeleteTopic(f"flood{rng.randrange(3)}"),
        )
    )
