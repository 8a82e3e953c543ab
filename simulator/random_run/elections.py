"""Draws changes of leadership in a random run: shutdowns of brokers, elections with and without an order, settings."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from attrs import evolve

from simulator.actions.processes import Crash, Start
from simulator.actions.requests import Elect, Reassign
from simulator.actions.scene import CONTROLLER, LEADER_OF, SAME
from simulator.random_run.happenings import AtStep, Happening, Lasting, Leave, NameLeader
from simulator.random_run.requests import elsewhere
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment
from transport.messages import ElectionType

_CHANCE_OF_UNCLEAN: Final = 0.05
_CHANCE_AT_STEP: Final = 0.3
_CHANCE_OF_ALL: Final = 0.4
_CHANCE_NAMED_AT_STEP: Final = 0.3
_CHANCE_IN_A_MOVE: Final = 0.3
_CHANCE_OF_CRASH: Final = 0.2
_CHANCE_OF_NONSENSE: Final = 0.3
_MOST_REPLICAS: Final = 4

_ROUNDS: Final = ("U1", "B3", "B4", "B6", "elect", "order", "leave")


def draw_settings(rng: random.Random, settings: Settings) -> Settings:
    """Draw whether unclean elections are allowed, and how often leadership is rebalanced to preferred leaders."""
    return evolve(
        settings,
        unclean_leader_election=rng.random() < _CHANCE_OF_UNCLEAN,
        leader_rebalance_interval=rng.choice((None, 2, 7)),
    )


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a few elections for the time until `seconds`."""
    del settings
    names = list(partitions)
    return [_elect(rng, names, rng.uniform(0.5, seconds - 1)) for _ in range(rng.choice((1, 1, 2)))]


def draw_shutdowns(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw a few shutdowns of brokers for the time until `seconds`."""
    names = list(partitions)
    return [_stop(rng, settings, names, rng.uniform(0.0, seconds - 2)) for _ in range(rng.choice((1, 1, 2)))]


def _stop(rng: random.Random, settings: Settings, names: list[str], at: float) -> Happening:
    who = rng.choice((rng.choice(settings.broker_ids), LEADER_OF + rng.choice(names)))
    step = None
    if rng.random() < _CHANCE_AT_STEP:
        step = AtStep(rng.choice(("U1", "B3", "B6", "elect", "leave")), Moment.COMMITTED, rng.choice((0.0, 0.01)))
    return Happening(at, step, Leave(who, rng.uniform(0.5, 8.0)))


def _elect(rng: random.Random, names: list[str], at: float) -> Happening:
    kind = rng.choice((ElectionType.PREFERRED, ElectionType.PREFERRED, ElectionType.UNCLEAN))
    wanted = None if rng.random() < _CHANCE_OF_ALL else (rng.choice(names),)
    return Happening(at, None, Elect(kind, wanted))


def draw_named(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw a few elections for the time until `seconds`, at any time or at a step of something else."""
    names = sorted(partitions)
    happenings = [_named(rng, names, rng.uniform(0.5, seconds - 1)) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    if rng.random() < _CHANCE_IN_A_MOVE:
        happenings += _in_a_move(rng, settings, rng.choice(names), partitions, rng.uniform(0.5, seconds - 5))
    if rng.random() < _CHANCE_OF_CRASH:
        moment = rng.choice((Moment.DECIDED, Moment.COMMITTED, Moment.PUBLISHED))
        at = rng.uniform(0.0, seconds / 2)
        crash = Lasting(Crash(CONTROLLER), rng.uniform(0.5, 8.0), (Start(SAME),))
        happenings.append(Happening(at, AtStep("order", moment), crash))
    if rng.random() < _CHANCE_OF_NONSENSE:
        name = rng.choice(names)
        happenings.append(Happening(rng.uniform(0.5, seconds - 1), None, _nonsense(rng, settings, name, partitions)))
    return happenings


def _named(rng: random.Random, names: list[str], at: float) -> Happening:
    some = names if rng.random() < 0.2 else sorted(rng.sample(names, min(2, len(names))))  # noqa: PLR2004  rarely all
    step = None
    if rng.random() < _CHANCE_NAMED_AT_STEP:
        step = AtStep(rng.choice(_ROUNDS), Moment.COMMITTED, rng.choice((0.0, 0.01, 0.1)))
    return Happening(at, step, NameLeader(tuple(some), rng.randrange(1, _MOST_REPLICAS)))


def _in_a_move(
    rng: random.Random, settings: Settings, name: str, partitions: Mapping[str, Replicas], at: float
) -> list[Happening]:
    """Return a move and an election with a named order while the move is in progress."""
    move = Happening(at, None, Reassign({name: elsewhere(rng, settings, partitions[name])}))
    step = AtStep(rng.choice(("U1", "ISR", "B3", "B4")), Moment.COMMITTED, rng.choice((0.0, 0.001, 0.1)))
    return [move, Happening(at, step, NameLeader((name,), rng.randrange(1, 2 * _MOST_REPLICAS)))]


def _nonsense(rng: random.Random, settings: Settings, name: str, partitions: Mapping[str, Replicas]) -> Elect:
    """Return an election that must be rejected."""
    now, stranger = partitions[name], settings.broker_ids[-1] + 1
    orders = ((), (*now, now[0]), (stranger, *now[1:]), (*now, stranger), now[1:])
    wrong = {name: rng.choice(orders)}
    return rng.choice(
        (
            Elect(ElectionType.PREFERRED, (), orders=wrong),
            Elect(ElectionType.PREFERRED, (name,), orders=wrong),
            Elect(ElectionType.PREFERRED, (), orders={"nowhere-0": now}),
            Elect(ElectionType.UNCLEAN, (), orders={name: now}),
        )
    )
