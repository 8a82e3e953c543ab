"""The brokers of a cluster: rows as inputs have them, and the arrays that planning works on.

Planning knows a broker by its index: its place among all brokers in the order of their ids. `Brokers.ids` turns an
index back into an id. Whatever is one value for each broker is an array of that length: "broker-sized".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from spark_bridge.errors import PlanError

NO_RACK = -1


class BrokerState(StrEnum):
    """What a broker may be given, and whether it may keep what it has."""

    LIVE = "live"
    EXCLUDED = "excluded"  # gets nothing new, keeps what it has
    DRAINING = "draining"  # gets nothing new, and all that it has leaves
    DEAD = "dead"  # not registered: only replicas assigned to it tell of it; gets nothing new


@frozen
class Broker:
    """A broker.

    Attributes:
        id: Its id, 0 or more.
        rack: Its rack; None when it told none.
        capacity: What it can carry in relation to the others, in any unit that all share; above 0.
        disk: How many bytes its log directories can hold together; None when nobody said.
        state: What it may be given.
    """

    id: int
    rack: str | None = None
    capacity: float = 1.0
    disk: int | None = None
    state: BrokerState = BrokerState.LIVE


@frozen(slots=False)
class Brokers:
    """All brokers, by index."""

    rows: tuple[Broker, ...] = field(repr=False)

    @classmethod
    def of(cls, brokers: Iterable[Broker], assigned: Iterable[int] = ()) -> Brokers:
        """Put brokers in order; an id that is only assigned replicas becomes a dead broker without a rack.

        Raises:
            PlanError: An id is there twice.
        """
        by_id: dict[int, Broker] = {}
        for broker in brokers:
            if broker.id in by_id:
                raise PlanError(f"broker {broker.id} is there twice")
            by_id[broker.id] = broker
        for dead in assigned:
            by_id.setdefault(dead, Broker(dead, state=BrokerState.DEAD))
        return cls(tuple(by_id[id_] for id_ in sorted(by_id)))

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def ids(self) -> NDArray[np.int32]:
        """Return the ids, in order."""
        return np.array([b.id for b in self.rows], np.int32)

    @cached_property
    def index_of(self) -> dict[int, int]:
        """Return the index of every id."""
        return {b.id: i for i, b in enumerate(self.rows)}

    @cached_property
    def rack_names(self) -> tuple[str, ...]:
        """Return the names of all racks, in order; a rack's number is its place here."""
        return tuple(sorted({b.rack for b in self.rows if b.rack is not None}))

    @cached_property
    def rack(self) -> NDArray[np.int32]:
        """Return the number of every broker's rack, NO_RACK for those without."""
        number = {name: n for n, name in enumerate(self.rack_names)}
        return np.array([NO_RACK if b.rack is None else number[b.rack] for b in self.rows], np.int32)

    @cached_property
    def capacity(self) -> NDArray[np.float64]:
        """Return every broker's capacity."""
        return np.array([b.capacity for b in self.rows], np.float64)

    @cached_property
    def disk(self) -> NDArray[np.int64]:
        """Return how many bytes every broker can hold; the greatest number where nobody said."""
        return np.array([np.iinfo(np.int64).max if b.disk is None else b.disk for b in self.rows], np.int64)

    def in_state(self, *states: BrokerState) -> NDArray[np.bool_]:
        """Return which brokers are in one of these states."""
        return np.array([b.state in states for b in self.rows], np.bool_)

    def indices(self, ids: Sequence[int] | frozenset[int]) -> NDArray[np.int32]:
        """Return the indices of some brokers, in order.

        Raises:
            PlanError: One is unknown.
        """
        if unknown := sorted(set(ids) - self.index_of.keys()):
            raise PlanError(f"broker {', '.join(map(str, unknown))} is not in the snapshot: choose from {self}")
        return np.array(sorted(self.index_of[id_] for id_ in ids), np.int32)

    def __str__(self) -> str:
        """Return the ids as a user reads them, the first twenty of many."""
        more = len(self.rows) - 20
        return ", ".join(str(b.id) for b in self.rows[:20]) + (f" and {more} more" if more > 0 else "")
