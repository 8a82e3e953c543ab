"""The schedule of faults, drawn from a seed before the run begins."""

from __future__ import annotations

import random
from collections.abc import Mapping
from enum import Enum
from typing import Final

from attrs import frozen

from tests.cluster.kills_and_pauses.nodes import BROKERS, CONTROLLERS, ZOOKEEPER, broker_name, controller_name

ACTIVE: Final = "active-controller"
"""Whichever controller is in office then."""

ONLY_PAUSED: Final = frozenset({broker_name(BROKERS[-1]), controller_name(CONTROLLERS[-1])})
"""The nodes that live through the whole run, so that the growth of their memory shows."""

MOST_BROKERS_AWAY: Final = 2
"""Of six: with three replicas and min.insync.replicas=2, most partitions can still be written to."""

FIRST_AT: Final = 1.0
BETWEEN_SECONDS: Final = (1.0, 8.0)
RECOVERY_SECONDS: Final = 6.0
"""The time without a new fault for a node that is back."""

SHARE_OF_PAIRS: Final = 0.25

_BROKER_NAMES: Final = tuple(map(broker_name, BROKERS))
_WEIGHTS: Final = {
    **dict.fromkeys(_BROKER_NAMES, 9),
    **dict.fromkeys(map(controller_name, CONTROLLERS), 4),
    ACTIVE: 18,
    ZOOKEEPER: 10,
}
"""The weight of each in the draw."""


class Kind(Enum):
    """The kind of a fault: the signal that a process gets."""

    KILL = "SIGKILL"
    TERM = "SIGTERM"
    PAUSE = "SIGSTOP"


@frozen
class Fault:
    """A fault of a node, `at` seconds after the beginning; the node is back `seconds` later."""

    at: float
    node: str
    kind: Kind
    seconds: float


def draw(rng: random.Random, length: float, session_seconds: float) -> list[Fault]:
    """Draw what happens in a run of `length` seconds, in order; all are back at its end.

    A node has one fault at a time, and no more than two brokers are away together.
    """
    back_at: dict[str, float] = {}
    faults: list[Fault] = []
    now = FIRST_AT
    while now < length:
        for _ in range(2 if rng.random() < SHARE_OF_PAIRS else 1):
            free = _free(back_at, now)
            if not free:
                break
            node = rng.choices(free, [_WEIGHTS[name] for name in free])[0]
            fault = _fault(rng, now, node, session_seconds)
            if now + fault.seconds <= length:
                faults.append(fault)
                back_at[node] = now + fault.seconds + RECOVERY_SECONDS
        now += rng.uniform(*BETWEEN_SECONDS)
    return faults


def _free(back_at: Mapping[str, float], now: float) -> list[str]:
    """Return the nodes that may get a fault."""
    away = [name for name, then in back_at.items() if then > now]
    brokers_stay = sum(name in _BROKER_NAMES for name in away) >= MOST_BROKERS_AWAY
    return [name for name in _WEIGHTS if name not in away and not (brokers_stay and name in _BROKER_NAMES)]


def _fault(rng: random.Random, now: float, node: str, session_seconds: float) -> Fault:
    kind = Kind.PAUSE if node in ONLY_PAUSED else rng.choices([Kind.KILL, Kind.TERM, Kind.PAUSE], (45, 15, 40))[0]
    share = rng.uniform(0.1, 0.7) if rng.random() < 1 / 2 else rng.uniform(1.3, 2.5)  # of a session's time-out
    return Fault(round(now, 2), node, kind, round(share * session_seconds, 2))
