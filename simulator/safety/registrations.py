"""The times at which brokers registered, and at which their registrations ended."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

import trio
from attrs import define, field

from simulator.settings import CONTROLLERS
from transport.metadata import number_in
from transport.store import paths
from transport.store.protocol import Create, Delete, Op, Set

STALE_SECONDS: Final = 15.0
"""Seconds for which a controller may act on a broker's former state: a session timeout and a follower's lag."""

_NEVER: Final = (-inf, -inf)
_BELOW: Final = f"{paths.BROKER_IDS}/"


@define
class Registrations:
    """The brokers' registrations, as commits create and delete them."""

    _since: dict[int, float] = field(factory=dict, init=False)
    _until: dict[int, float] = field(factory=dict, init=False)
    _ends: dict[int, tuple[float, float]] = field(factory=dict, init=False)
    """When each broker's last two registrations ended."""

    _leaving: dict[int, None] = field(factory=dict, init=False)
    """The brokers that have requested a controlled shutdown since they registered."""

    def committed(self, ops: Sequence[Op]) -> list[int]:
        """Apply a commit and return the brokers that it registers."""
        new = []
        for op in ops:
            if not op.path.startswith(_BELOW):
                continue
            broker_id = number_in(op.path.removeprefix(_BELOW))
            # In a cluster of Kafka's, the controller may register, too.
            if broker_id is None or broker_id in CONTROLLERS:
                continue
            # Whatever is written over a registration, its broker is alive.
            if isinstance(op, Create) or (isinstance(op, Set) and self._until.get(broker_id) != inf):
                self._since[broker_id], self._until[broker_id] = trio.current_time(), inf
                self._leaving.pop(broker_id, None)
                new.append(broker_id)
            elif isinstance(op, Delete):
                self._until[broker_id] = now = trio.current_time()
                self._ends[broker_id] = self._ends.get(broker_id, _NEVER)[1], now
        return new

    def shutting_down(self, broker_id: int) -> None:
        """Record that a broker requests a controlled shutdown."""
        self._leaving[broker_id] = None

    def is_shutting_down(self, broker_id: int) -> bool:
        """Return whether a broker has requested a controlled shutdown since it registered."""
        return broker_id in self._leaving

    def since(self, broker_id: int) -> float:
        """Return when a broker last registered; -inf if it never did."""
        return self._since.get(broker_id, -inf)

    def is_registered(self, broker_id: int) -> bool:
        """Return whether a broker is registered."""
        return self._until.get(broker_id) == inf

    def ends_since(self, broker_id: int, since: float) -> int:
        """Return how many registrations of a broker have ended since a time; 2 stands for more, too."""
        return sum(end >= since for end in self._ends.get(broker_id, _NEVER))

    def was_live(self, broker_id: int, *, since: float) -> bool:
        """Return whether a broker has been registered at any time since `since`."""
        return self._until.get(broker_id, -inf) >= since

    def has_been_live(self, broker_id: int, *, since: float) -> bool:
        """Return whether a broker has been registered continuously since `since`."""
        return self._until.get(broker_id) == inf and self._since[broker_id] <= since
