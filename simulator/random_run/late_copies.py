"""Draws requests that arrive late or wait, with what makes a difference by then; and crashes around a lost disk."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from simulator.actions.network import DelayRequest
from simulator.actions.processes import AnswerRequests, Crash, Pause, RefuseRequests, Start, Wake
from simulator.actions.requests import Reassign
from simulator.actions.scene import CONTROLLER, LEADER_OF, SAME, Node
from simulator.random_run.happenings import AtStep, Happening, Lasting, Leave
from simulator.random_run.requests import elsewhere
from simulator.random_run.topology import Replicas
from simulator.settings import Settings
from simulator.steps import Moment

_STEPS: Final = (
    AtStep("storage", Moment.COMMITTED),
    AtStep("expel", Moment.DECIDED),
    AtStep("expel", Moment.COMMITTED),
)


def draw(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float) -> list[Happening]:
    """Draw one or two late copies for the time until `seconds`."""
    happenings: list[Happening] = []
    for _ in range(rng.randint(1, 2)):
        at = rng.uniform(0.5, seconds / 2)
        make = rng.choice((_late_isr, _late_isr, _late_shutdown, _late_orders, _busy_channel, _busy_channel))
        happenings += make(rng, settings, partitions, at)
    return happenings


def draw_lost_disks(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], seconds: float
) -> list[Happening]:
    """Draw a broker that loses its disk, and a crash of the controller that removes it from ISRs."""
    at, name = rng.uniform(0.5, seconds - 5), rng.choice(sorted(partitions))
    broker: Node = LEADER_OF + name if rng.random() < 0.5 else rng.choice(settings.broker_ids)  # noqa: PLR2004  as often
    lost = Lasting(Crash(broker, noticed=rng.random() < 0.5), rng.uniform(0.1, 3.0), (Start(SAME, wipe=True),))  # noqa: PLR2004
    crash = Lasting(Crash(CONTROLLER, noticed=True), rng.uniform(0.1, 4.0), (Start(SAME),))
    return [Happening(at, rng.choice(_STEPS), crash), Happening(at, None, lost)]


def _late_isr(rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], at: float) -> list[Happening]:
    """Return a follower that leaves the ISR and returns before a copy of the leader's first request arrives."""
    name = rng.choice(sorted(partitions))
    away = settings.replica_lag_time * rng.uniform(1.2, 2.0)
    copy = _copy(LEADER_OF + name, away * rng.uniform(0.3, 2.0), "AlterPartition", settings.controller_ids)
    pause = Lasting(Pause(rng.choice(partitions[name]), keeps_session=True), away, (Wake(SAME),))
    return [Happening(at, None, copy), Happening(at, None, pause)]


def _late_shutdown(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], at: float
) -> list[Happening]:
    """Return a broker that starts again before a copy of its request for a controlled shutdown arrives."""
    del partitions
    broker = rng.choice(settings.broker_ids)
    copy = _copy(broker, rng.uniform(1.0, 4.0), "ControlledShutdown", settings.controller_ids)
    leave = Leave(broker, rng.uniform(0.1, 0.5))
    return [
        Happening(at, None, copy),
        Happening(at + 0.01, None, leave),
        Happening(at + rng.uniform(0.05, 0.5), None, Crash(broker, noticed=True)),
    ]


def _late_orders(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], at: float
) -> list[Happening]:
    """Return a move some of whose orders arrive again after later ones."""
    name = rng.choice(sorted(partitions))
    target = elsewhere(rng, settings, partitions[name])
    api = rng.choice(("LeaderAndIsr", "StopReplica", "UpdateMetadata"))
    step = AtStep(rng.choice(("U1", "A1", "B3", "B4", "B6", "B6")), Moment.DECIDED)
    copy = _copy(CONTROLLER, rng.uniform(0.2, 5.0), api, (*partitions[name], *target))
    return [Happening(at, step, copy), Happening(at, None, Reassign({name: target}))]


def _busy_channel(
    rng: random.Random, settings: Settings, partitions: Mapping[str, Replicas], at: float
) -> list[Happening]:
    """Return a move during whose last rounds orders wait for brokers that do not answer, and are merged."""
    name = rng.choice(sorted(partitions))
    silent = rng.sample(settings.broker_ids, rng.randint(1, len(settings.broker_ids)))
    apis = rng.choice((("UpdateMetadata",), ("LeaderAndIsr", "UpdateMetadata", "StopReplica")))
    busy = Lasting(RefuseRequests(silent, apis), rng.uniform(0.1, 4.0), (AnswerRequests(SAME),))
    step = AtStep(rng.choice(("U1", "U1", "ISR", "ISR", "B3", "B4", "B6")), Moment.DECIDED)
    move = Reassign({name: elsewhere(rng, settings, partitions[name])})
    return [Happening(at, step, busy), Happening(at, None, move)]


def _copy(sender: Node, seconds: float, api: str, receivers: tuple[int, ...]) -> DelayRequest:
    return DelayRequest(sender, seconds, breaks=True, receivers=tuple(dict.fromkeys(receivers)), api=api)
