"""Publications, sorted by the brokers that they are for, with what several brokers are told in shared blocks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Generic, TypeVar

from attrs import define, evolve, field

from controller.channels.backlog import Told
from controller.channels.blocks import (
    MAX_PARTITIONS,
    Key,
    Orders,
    States,
    Stops,
    are_rising,
    key_of,
    key_of_stop,
    state_of,
)
from controller.model.rounds import Publication, TellLeaderAndIsr, TellMetadata, TellStopReplica
from transport.messages import LeaderAndIsrPartition, PartitionState, StopReplicaPartition
from transport.messages.shared import CommonRows, SharedRows
from transport.metadata import OfPartition

R = TypeVar("R")


def addressed(publications: Sequence[Publication], everyone: Collection[int]) -> dict[int, list[Told]]:
    """Return what each broker is told of what was published together. A broker outside `everyone` is told nothing.

    Consecutive states for the same brokers are joined, and so are all orders to lead and follow, and all stops. They
    may then follow publications of other kinds that came after them, which is safe because a backlog keeps kinds apart.
    But a stop is never overtaken by a later order for its partition, nor the other way round.
    """
    sorter = _Sorter(everyone)
    for publication in publications:
        match publication:
            case TellLeaderAndIsr():
                sorter.order(publication.recipients, publication.states, is_new=publication.is_new)
            case TellStopReplica():
                sorter.stop(publication.recipients, publication.partitions)
            case TellMetadata():
                sorter.inform(publication)
    sorter.join_orders()
    sorter.join_states()
    return sorter.told


@define
class _Selections(Generic[R]):
    """Rows of which each broker is told its own selection."""

    _named: Callable[[Iterable[R]], Iterable[OfPartition]]
    """Returns of each row what names its partition."""

    _common: CommonRows[R] = field(factory=CommonRows, init=False)
    _places: dict[int, list[int]] = field(factory=dict, init=False)
    """The rows for each broker, by their places among all."""

    def add(self, recipients: Iterable[tuple[int, ...]], rows: Iterable[R], begin: Callable[[int], object]) -> None:
        """Add rows, each for its recipients; `begin` says of a broker that comes first whether it may be told."""
        first, known = len(self._common.rows), self._places
        self._common.rows += rows
        for place, brokers in enumerate(recipients, first):
            for broker_id in brokers:
                if broker_id in known:
                    known[broker_id].append(place)
                elif begin(broker_id):
                    known[broker_id] = [place]

    def joined(self) -> Iterator[tuple[int, list[list[SharedRows[R]]]]]:
        """Yield each broker with the lists that it is told together: no two of their rows have the same key."""
        rows = self._common.rows
        self._common.are_sorted = are_rising(self._named(rows))
        are_different = self._common.are_sorted or self._are_different(rows)
        for broker_id, places in self._places.items():
            # Rows with the same key would have to be merged: the backlog does so if they come one by one.
            is_list = are_different or self._are_different([rows[place] for place in places])
            size = MAX_PARTITIONS if is_list else 1
            lists = [self._common.select(places[start : start + size]) for start in range(0, len(places), size)]
            yield broker_id, [lists] if is_list else [[rows] for rows in lists]

    def _are_different(self, rows: Sequence[R]) -> bool:
        return len(set(map(key_of, self._named(rows)))) == len(rows)


_of_states: Final[Callable[[Iterable[LeaderAndIsrPartition]], Iterable[PartitionState]]] = partial(map, state_of)


@define
class _Sorter:
    everyone: Collection[int]
    told: dict[int, list[Told]] = field(factory=dict, init=False)
    _orders: _Selections[LeaderAndIsrPartition] = field(factory=partial(_Selections, _of_states), init=False)
    _stops: _Selections[StopReplicaPartition] = field(factory=partial(_Selections, iter), init=False)
    """The stops that follow these orders."""

    _stopped: set[Key] = field(factory=set, init=False)

    _states: list[PartitionState] = field(factory=list, init=False)
    _informed: tuple[int, ...] | None = field(default=None, init=False)
    """The brokers that are sent these states, None meaning all."""

    def order(self, recipients: Sequence[tuple[int, ...]], states: Sequence[PartitionState], *, is_new: bool) -> None:
        """Add orders to lead or follow: those in `recipients[i]` are told `states[i]`."""
        if self._stopped and not self._stopped.isdisjoint(map(key_of, states)):
            self.join_orders()
        self._orders.add(recipients, [LeaderAndIsrPartition(state, is_new) for state in states], self._begins)

    def stop(self, recipients: Sequence[tuple[int, ...]], partitions: Sequence[StopReplicaPartition]) -> None:
        """Add orders to stop replicas: those in `recipients[i]` stop theirs of `partitions[i]`."""
        self._stopped.update(map(key_of_stop, partitions))
        self._stops.add(recipients, partitions, self._begins)

    def inform(self, told: TellMetadata) -> None:
        """Add metadata."""
        is_more = told.live_brokers is not None or told.topics is not None
        if is_more or told.brokers != self._informed:
            self.join_states()
        if is_more:
            more = evolve(told, partitions=())
            for broker_id in self._begin(told.brokers):
                self.told[broker_id].append(more)
        self._informed = told.brokers
        self._states += told.partitions

    def join_orders(self) -> None:
        """Pass on the orders so far, and then the stops."""
        for broker_id, orders in self._orders.joined():
            self.told[broker_id] += map(Orders.of, orders)
        for broker_id, stops in self._stops.joined():
            self.told[broker_id] += map(Stops.of, stops)
        self._orders, self._stops, self._stopped = _Selections(_of_states), _Selections(iter), set()

    def join_states(self) -> None:
        """Pass on the states so far."""
        if self._states:
            states = States.of(self._states)
            for broker_id in self._begin(self._informed):
                self.told[broker_id] += states
            self._states = []

    def _begins(self, broker_id: int) -> bool:
        return bool(self._begin((broker_id,)))

    def _begin(self, brokers: tuple[int, ...] | None) -> list[int]:
        """Return those of some brokers that may be told something, each with a list of it."""
        recipients = list(self.everyone) if brokers is None else [id_ for id_ in brokers if id_ in self.everyone]
        for broker_id in recipients:
            self.told.setdefault(broker_id, [])
        return recipients
