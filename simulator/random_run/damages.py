"""Draws damaged and absurd rows, of topics that exist and of others, which tools or operators write by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any, Final

from attrs import define

from simulator.actions.processes import Crash, Start
from simulator.actions.scene import CONTROLLER, SAME, Strike
from simulator.actions.znodes import Damage, DamageExisting
from simulator.random_run.faults import draw_optional_step
from simulator.random_run.foreign_rows import (
    ABSURD_NAMES,
    ABSURD_VALUES,
    ROWS,
    TOPIC,
    places,
    renamed,
    with_field,
    with_key,
)
from simulator.random_run.happenings import Happening, Lasting
from simulator.random_run.skews import pick, skewed
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from transport.store import paths

_CHANCE_AT_STEP: Final = 0.3
_CHANCE_OF_TAKEOVER: Final = 0.3
_CHANCE_OF_REPAIR: Final = 0.4
_CHANCE_TO_EXIST: Final = 0.7

_LONGEST: Final = 500
"""Characters of a value or a name; longer ones are left to tests, because plans are printed."""

_VALUES: Final = tuple(value for value in ABSURD_VALUES if len(str(value)) <= _LONGEST)
_NAMES: Final = tuple(name for name in ABSURD_NAMES if len(name) <= _LONGEST)

_JUNK: Final = ("", "{", "[]", "null", "0", '"x"', "\u0663", '{"version": 99}')
"""Data that is no registration."""

_MISREAD: Final = frozenset({"broker", "storage id", "default config"})
"""Rows that would change what others do if they are read: their absurdity has to make them unreadable."""

_OF_TOPICS: Final = ("topic", "topic", "state", "state", "topic config", "identity of a move")


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few rows for the time until `seconds`, some of them just before the next controller reads them."""
    vandal = _Vandal(rng, settings, sorted({name.rpartition("-")[0] for name in partitions}))
    happenings = []
    for _ in range(rng.randint(1, 4)):
        at = rng.uniform(0.3, seconds - 1)
        step = draw_optional_step(rng, _CHANCE_AT_STEP)
        happenings.append(Happening(at, step, vandal.damage()))
        if rng.random() < _CHANCE_OF_TAKEOVER:
            crash = Lasting(Crash(CONTROLLER, noticed=True), rng.uniform(0.5, 6.0), (Start(SAME),))
            happenings.append(Happening(at + rng.choice((0.0, 0.5)), None, crash))
    return happenings


@define
class _Vandal:
    rng: random.Random
    settings: Settings
    topics: list[str]

    def damage(self) -> Strike:
        """Return a damaged row, which is perhaps repaired later."""
        draws = ((6, self._row), (2, self._registration), (1, self._settings))
        return pick(self.rng, skewed(self.rng, draws))()

    def _registration(self) -> Damage:
        path = paths.broker(self.rng.choice(self.settings.broker_ids))
        return DamageExisting({path: self.rng.choice(_JUNK)})

    def _settings(self) -> Damage:
        return Damage({paths.broker_config(None): self.rng.choice(_JUNK[1:])})

    def _row(self) -> Strike:
        kind = self.rng.choice((*sorted(ROWS.keys() - _MISREAD), *_OF_TOPICS))
        row, value = ROWS[kind], ROWS[kind].value
        at = sorted(places(value), key=str)
        keys = [place for place in at if isinstance(place[-1], str)]
        how = pick(self.rng, ((1, "junk"), (1, "name"), (4, "value"), (1, "key")) if at else ((1, "name"),))
        if how == "name":
            return _written(self._of_ours(renamed(row, self.rng.choice(_NAMES)).path), value)
        path = self._of_ours(row.path)
        if how == "junk":
            return self._repaired(Damage({path: self.rng.choice(_JUNK)}), _written(path, value))
        sound = value
        if how == "value":
            value = with_field(value, self.rng.choice(at), self.rng.choice(_VALUES))
        else:
            value = with_key(value, self.rng.choice(keys), self.rng.choice(_NAMES))
        return self._repaired(_written(path, value), _written(path, sound))

    def _repaired(self, damage: Damage, repair: Damage) -> Strike:
        if self.rng.random() < _CHANCE_OF_REPAIR:
            return Lasting(damage, self.rng.choice((0.01, 1.0, 6.0)) * self.rng.uniform(0.5, 1.5), (repair,))
        return damage

    def _of_ours(self, path: str) -> str:
        """Return the path of the same row of a topic that exists, as often as not."""
        parts = path.split("/")
        if TOPIC in parts and self.rng.random() < _CHANCE_TO_EXIST:
            parts[parts.index(TOPIC)] = self.rng.choice(self.topics)
        return "/".join(parts)


def _written(path: str, value: Any) -> Damage:  # noqa: ANN401  any JSON
    return Damage({path: "" if value is None else json.dumps(value)})
