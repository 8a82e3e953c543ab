"""Draws rollouts, with the orders of operators, moves by hand, dead brokers and failovers in the middle of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Final

from simulator.actions.processes import Crash, Start
from simulator.actions.requests import CreateTopic, DeleteTopic, Reassign
from simulator.actions.rollouts import OrderRollout, StartRollout
from simulator.actions.scene import CONTROLLER, SAME, Action
from simulator.random_run.happenings import AtStep, Happening, Lasting
from simulator.random_run.requests import elsewhere
from simulator.random_run.topology import Replicas, draw_replicas
from simulator.settings import Settings
from simulator.steps import Moment
from transport.messages import UNTHROTTLED, RolloutOrder

_NAME: Final = "monday"
_ROUNDS: Final = ("marks", "rollouts", "U1", "A1", "B6")


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw a topic that is moved by a rollout in small steps, and what happens to both until `seconds`."""
    del partitions
    topic, count = "rolled", rng.randint(4, 12)
    rows = tuple(draw_replicas(rng, settings.broker_ids, rng.choice((1, 2, 2))) for _ in range(count))
    targets = {f"{topic}-{n}": elsewhere(rng, settings, row) for n, row in enumerate(rows)}
    throttle = rng.choice((UNTHROTTLED, 10_000_000))
    limits = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 4)
    at = rng.uniform(0.6, 2.0)
    return [
        Happening(rng.uniform(0.1, 0.5), None, CreateTopic(topic, rows)),
        Happening(at, None, StartRollout(_NAME, targets, *limits, throttle)),
        *_troubles(rng, settings, targets, at, seconds),
    ]


def _troubles(
    rng: random.Random, settings: Settings, targets: Mapping[str, Replicas], at: float, seconds: float
) -> Iterator[Happening]:
    for _ in range(rng.randint(1, 5)):
        step = AtStep(rng.choice(_ROUNDS), rng.choice((Moment.DECIDED, Moment.COMMITTED)))
        is_at_step = rng.random() < 0.5  # noqa: PLR2004  half of them
        yield Happening(rng.uniform(at, seconds - 1), step if is_at_step else None, _trouble(rng, settings, targets))
    if rng.random() < 0.5:  # noqa: PLR2004  half of the runs
        yield Happening(seconds - 0.5, None, OrderRollout(_NAME, RolloutOrder.RESUME))


def _trouble(rng: random.Random, settings: Settings, targets: Mapping[str, Replicas]) -> Action:
    name = rng.choice(sorted(targets))
    orders = (RolloutOrder.PAUSE, RolloutOrder.RESUME, RolloutOrder.ABORT, RolloutOrder.UNDO)
    return rng.choice(
        (
            OrderRollout(_NAME, rng.choice(orders)),
            OrderRollout(_NAME, rng.choice(orders)),
            OrderRollout(_NAME, RolloutOrder.SET, in_all=rng.randint(1, 4), into=rng.randint(1, 3)),
            Reassign({name: elsewhere(rng, settings, targets[name])}),
            DeleteTopic("rolled"),
            Lasting(Crash(CONTROLLER, noticed=True), rng.uniform(0.5, 4.0), (Start(SAME),)),
            Lasting(Crash(CONTROLLER, noticed=True), rng.uniform(0.5, 4.0), (Start(SAME),)),
            Lasting(Crash(rng.choice(settings.broker_ids), noticed=True), rng.uniform(0.5, 4.0), (Start(SAME),)),
        )
    )
