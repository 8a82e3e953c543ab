"""Draws rows of rollouts that make no sense, and the next controller that reads them.

A rollout that nobody has started has one absurd field among valid rows; the run's own rollout gets a row of that other
one. Both are to be quarantined, while the rest of the run goes on. Other rows are closed to writes for a while.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

from attrs import evolve

from simulator.actions.processes import Crash, Start
from simulator.actions.rollouts import OrderRollout
from simulator.actions.scene import CONTROLLER, SAME
from simulator.actions.znodes import Allow, Damage, DamageExisting, WriteSettings
from simulator.random_run.foreign_rows import (
    ABSURD_VALUES,
    ROLLOUT,
    ROLLOUT_ROWS,
    SOUND_DATA,
    Row,
    places,
    with_field,
)
from simulator.random_run.happenings import Happening, InTurn, Lasting
from transport.messages import RolloutOrder
from transport.store import paths
from transport.store.tree import Access

_CHANCE_OF_ITS_OWN: Final = 0.3
_CHANCE_TO_BE_FIRST: Final = 0.5
_CHANCE_OF_A_REMOVAL: Final = 0.5

_LONGEST: Final = 500
"""Characters of a value; longer ones are left to tests, because plans are printed."""

_VALUES: Final = tuple(value for value in ABSURD_VALUES if len(str(value)) <= _LONGEST)


def draw(rng: random.Random, name: str, at: float, seconds: float) -> Iterator[Happening]:
    """Draw rows after `at` that are found by the next controller; `name` is the rollout of the run."""
    at = rng.uniform(at, seconds - 2)
    kind = rng.choice(sorted(ROLLOUT_ROWS))
    row = ROLLOUT_ROWS[kind]
    place = rng.choice(sorted(places(row.value), key=str))
    row = evolve(row, value=with_field(row.value, place, rng.choice(_VALUES)))
    is_own, is_first = rng.random() < _CHANCE_OF_ITS_OWN, rng.random() < _CHANCE_TO_BE_FIRST
    damage = DamageExisting({_of(name, row.path): row.data}) if is_own else Damage(_all_rows(row, is_first=is_first))
    crash = Lasting(Crash(CONTROLLER, noticed=True), rng.uniform(0.5, 3.0), (Start(SAME),))
    yield Happening(at, None, InTurn((damage, crash)))
    if rng.random() < _CHANCE_OF_A_REMOVAL:
        order = OrderRollout(name if is_own else ROLLOUT, RolloutOrder.REMOVE)
        yield Happening(rng.uniform(at + 1, seconds), None, order)


def draw_unthrottled(rng: random.Random, brokers: Sequence[int], at: float) -> Iterator[Happening]:
    """Draw a broker that cannot be throttled for a while, from before a rollout begins."""
    broker = rng.choice(brokers)
    path = paths.broker_config(broker)
    closed = Lasting(Allow(path, Access.READ), rng.uniform(2.0, 7.0), (Allow(path, Access.ALL),))
    yield Happening(at - 0.05, None, InTurn((WriteSettings({f"brokers/{broker}": {}}), closed)))


def draw_closed(rng: random.Random, name: str, at: float, seconds: float) -> Iterator[Happening]:
    """Draw rows of a rollout that controllers may not write for a while, and orders in the meantime."""
    root, lasts = paths.rollout(name), rng.uniform(0.5, 4.0)
    rows = root, root, f"{root}/marks", paths.rollout_marks(name, 0), paths.rollout_strangers(name)
    begin, path = rng.uniform(at, max(at, seconds - 4)), rng.choice(rows)
    yield Happening(begin, None, Lasting(Allow(path, Access.READ), lasts, (Allow(path, Access.ALL),)))
    for _ in range(rng.randint(0, 2)):
        order = OrderRollout(name, rng.choice(list(RolloutOrder)))
        yield Happening(begin + rng.uniform(0.0, lasts), None, order)


def _all_rows(row: Row, *, is_first: bool) -> dict[str, bytes]:
    """Return the rows of a rollout of which one is absurd, parents first; `is_first` says its place in the queue."""
    data = {path: SOUND_DATA.get(path, b"") for path in row.parents} | {row.path: row.data}
    if is_first:
        state = paths.rollout(ROLLOUT)
        data[state] = data[state].replace(b'"number": 99', b'"number": 0')
    return dict(sorted(data.items()))


def _of(name: str, path: str) -> str:
    """Return the path of the same row of another rollout."""
    return path.replace(f"/{ROLLOUT}", f"/{name}", 1)
