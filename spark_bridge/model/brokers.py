"""The brokers of a cluster: the rows of inputs, and the arrays that planning works on.

Planning identifies a broker by its index: its position among all brokers, ordered by id. `Brokers.ids` turns an index
back into an id. An array with one value for each broker is called "broker-sized".
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
    """The state of a broker: whether it may receive replicas, and keep those that it has."""

    LIVE = "live"
    EXCLUDED = "excluded"  # receives nothing new, keeps what it has
    DRAINING = "draining"  # receives nothing new, loses everything it has
    DEAD = "dead"  # does not serve; receives nothing new, keeps what it has unless the goal removes it


@frozen
class Broker:
    """A broker.

    Attributes:
        id: Its id, 0 or more.
        rack: Its rack; None if it has none.
        capacity: Its capacity in relation to the others, in any common unit; above 0.
        disk: The total size of its log directories in bytes; None if unknown.
        state: Its state.
        is_down: Whether it does not serve although its state is not dead: one that drains or is excluded may be down.
    """

    id: int
    rack: str | None = None
    capacity: float = 1.0
    disk: int | None = None
    state: BrokerState = BrokerState.LIVE
    is_down: bool = False

    @property
    def serves(self) -> bool:
        """Return whether its replicas can be read now, and it can receive others."""
        return self.state is not BrokerState.DEAD and not self.is_down


@frozen(slots=False)
class Brokers:
    """All brokers, by index."""

    rows: tuple[Broker, ...] = field(repr=False)

    @classmethod
    def of(cls, brokers: Iterable[Broker], assigned: Iterable[int] = ()) -> Brokers:
        """Return brokers in order of id; an id that only has replicas becomes a dead broker without a rack.

        Raises:
            PlanError: An id is a duplicate.
        """
        by_id: dict[int, Broker] = {}
        for broker in brokers:
            if broker.id in by_id:
                raise PlanError(f"broker {broker.id} is a duplicate")
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
        """Return the names of all racks, in order; a rack's number is its index here."""
        return tuple(sorted({b.rack for b in self.rows if b.rack is not None}))

    @cached_property
    def rack(self) -> NDArray[np.int32]:
        """Return the number of each broker's rack, NO_RACK for those without."""
        number = {name: n for n, name in enumerate(self.rack_names)}
        return np.array([NO_RACK if b.rack is None else number[b.rack] for b in self.rows], np.int32)

    @cached_property
    def capacity(self) -> NDArray[np.float64]:
        """Return each broker's capacity."""
        return np.array([b.capacity for b in self.rows], np.float64)

    @cached_property
    def disk(self) -> NDArray[np.int64]:
        """Return the size of each broker's disk in bytes; the largest integer if unknown."""
        return np.array([np.iinfo(np.int64).max if b.disk is None else b.disk for b in self.rows], np.int64)

    @cached_property
    def serves(self) -> NDArray[np.bool_]:
        """Return which brokers serve."""
        return np.array([b.serves for b in self.rows], np.bool_)

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
        """Return the ids for users, at most the first twenty."""
        more = len(self.rows) - 20
        return ", ".join(str(b.id) for b in self.rows[:20]) + (f" and {more} more" if more > 0 else "")
