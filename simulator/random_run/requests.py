"""Draws an administrator's requests in a random run: moves, overrides, cancels, new topics, and invalid ones."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from attrs import define

from simulator.actions.requests import Reassign
from simulator.random_run import topology
from simulator.random_run.happenings import AtStep, Happening
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment

_NOBODY: Final = 99
"""The id of a broker that never exists."""

_CHANCE_OF_SECOND_THOUGHTS: Final = 0.6
_CHANCE_AT_STEP: Final = 0.6
ROUNDS: Final = ("U1", "U1", "A1", "ISR", "ISR", "B3", "B4", "B6", "B6")
"""The rounds of a move, those that each move has twice."""


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw requests for the time until `seconds`."""
    happenings: list[Happening] = []
    asker = _Asker(rng, settings, dict(partitions))
    for _ in range(rng.randint(3, 7)):
        at = rng.uniform(0.5, seconds - 1)
        kind = rng.choices(("move", "together", "topic", "invalid"), (8, 2, 1, 2))[0]
        if kind == "topic":
            name = f"late{len(happenings)}"
            happenings.append(Happening(at, None, topology.draw_topic(rng, settings, name)))
        elif kind == "invalid":
            happenings.append(Happening(at, None, asker.invalid()))
        else:
            happenings += asker.move(at, 1 if kind == "move" else min(3, len(partitions)))
    return happenings


def elsewhere(rng: random.Random, settings: Settings, now: Replicas) -> Replicas:
    """Draw a target with as few of the current replicas as the number of brokers allows."""
    others = [id_ for id_ in settings.broker_ids if id_ not in now]
    taken = rng.sample(others, min(len(others), len(now)))
    return (*taken, *now[len(taken) :])


@define
class _Asker:
    """Remembers the target last requested for each partition, as an administrator does."""

    rng: random.Random
    settings: Settings
    wanted: dict[str, Replicas]

    def move(self, at: float, count: int) -> list[Happening]:
        """Return a request to move partitions, and perhaps another that overrides or cancels it."""
        names = sorted(self.rng.sample(sorted(self.wanted), count))
        before = {name: self.wanted[name] for name in names}
        happenings = [Happening(at, None, self._request(names))]
        while self.rng.random() < _CHANCE_OF_SECOND_THOUGHTS:
            at, step = self._soon(at)
            happenings.append(Happening(at, step, self._second_thought(names, before)))
        return happenings

    def invalid(self) -> Reassign:
        """Return a request that must be rejected."""
        name = self.rng.choice(sorted(self.wanted))
        first = self.settings.broker_ids[0]
        return self.rng.choice(
            (
                Reassign({name: (first, _NOBODY)}),
                Reassign({name: ()}),
                Reassign({name: (first, first)}),
                Reassign({"nowhere-0": (first,)}),
                Reassign({name: None}),
            )
        )

    def _request(self, names: list[str]) -> Reassign:
        for name in names:
            self.wanted[name] = self._target(self.wanted[name])
        return Reassign({name: self.wanted[name] for name in names})

    def _second_thought(self, names: list[str], before: Mapping[str, Replicas]) -> Reassign:
        if self.rng.random() < 0.5:  # noqa: PLR2004  as often a cancel as an override
            self.wanted |= before
            return Reassign(dict.fromkeys(names))
        return self._request(names)

    def _soon(self, at: float) -> tuple[float, AtStep | None]:
        if self.rng.random() < _CHANCE_AT_STEP:
            moment = self.rng.choice((Moment.DECIDED, Moment.PUBLISHED))
            name = self.rng.choice(ROUNDS)
            return at, AtStep(name, moment, self.rng.choice((0.0, 0.0, 0.01, 0.1)))
        return at + self.rng.choice((0.0, 0.01, 0.1, 1.0)) * self.rng.random(), None

    def _target(self, now: Replicas) -> Replicas:
        rng, brokers = self.rng, self.settings.broker_ids
        others = [id_ for id_ in brokers if id_ not in now]
        kinds = ["any", "order"]
        kinds += ["replace", "replace", "grow"] if others else []
        kinds += ["shrink"] if len(now) > 1 else []
        kinds += ["elsewhere"] * 3 if len(others) >= len(now) else []
        match rng.choice(kinds):
            case "order":
                return tuple(rng.sample(now, len(now)))
            case "replace":
                place = rng.randrange(len(now))
                return (*now[:place], rng.choice(others), *now[place + 1 :])
            case "grow":
                return (*now, rng.choice(others))
            case "shrink":
                place = rng.randrange(len(now))
                return (*now[:place], *now[place + 1 :])
            case "elsewhere":
                return tuple(rng.sample(others, len(now)))
            case _:
                return topology.draw_replicas(rng, brokers, rng.randint(1, min(4, len(brokers))))
