"""Publications, sorted by the brokers that they are for, with what several brokers are told in shared blocks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import define, evolve, field

from controller.channels.backlog import Told
from controller.channels.blocks import MAX_PARTITIONS, Key, Orders, States, key_of, key_of_order
from controller.model.rounds import Publication, TellLeaderAndIsr, TellLeaderships, TellMetadata, TellStopReplica
from transport.messages import LeaderAndIsrPartition, PartitionState
from transport.messages.shared import CommonRows


def addressed(publications: Sequence[Publication], everyone: Collection[int]) -> dict[int, list[Told]]:
    """Return what each broker is told of what was published together. A broker outside `everyone` is told nothing.

    Consecutive states for the same brokers are joined, and so are all orders to lead and follow. They may then follow
    publications of other kinds that came after them, which is safe because a backlog keeps kinds apart. But a stop is
    never overtaken by a later order for its partition, nor the other way round.
    """
    sorter = _Sorter(everyone)
    for publication in publications:
        match publication:
            case TellLeaderAndIsr():
                sorter.order([publication.brokers], [publication.state], is_new=publication.is_new)
            case TellLeaderships():
                sorter.order(publication.recipients, publication.states, is_new=publication.is_new)
            case TellStopReplica():
                sorter.stop(publication)
            case TellMetadata():
                sorter.inform(publication)
    sorter.join_orders()
    sorter.join_states()
    return sorter.told


@define
class _Sorter:
    everyone: Collection[int]
    told: dict[int, list[Told]] = field(factory=dict, init=False)
    _orders: CommonRows[LeaderAndIsrPartition] = field(factory=CommonRows, init=False)
    _places: dict[int, list[int]] = field(factory=dict, init=False)
    """The orders for each broker, by their places among all."""

    _stops: list[TellStopReplica] = field(factory=list, init=False)
    """The stops that follow these orders."""

    _stopped: set[Key] = field(factory=set, init=False)

    _states: list[PartitionState] = field(factory=list, init=False)
    _informed: tuple[int, ...] | None = field(default=None, init=False)
    """The brokers that are sent these states, None meaning all."""

    def order(self, recipients: Sequence[tuple[int, ...]], states: Sequence[PartitionState], *, is_new: bool) -> None:
        """Add orders to lead or follow: those in `recipients[i]` are told `states[i]`."""
        if self._stopped and not self._stopped.isdisjoint(map(key_of, states)):
            self.join_orders()
        rows, known = self._orders.rows, self._places
        first = len(rows)
        rows += [LeaderAndIsrPartition(state, is_new) for state in states]
        for place, brokers in enumerate(recipients, first):
            for broker_id in brokers:
                if broker_id in known:
                    known[broker_id].append(place)
                elif self._begin((broker_id,)):
                    known[broker_id] = [place]

    def stop(self, told: TellStopReplica) -> None:
        """Add an order to stop a replica."""
        self._stops.append(told)
        self._stopped.add(told.partition.tp)
        self._begin(told.brokers)

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
        keys = list(map(key_of_order, self._orders.rows))
        are_different = len(set(keys)) == len(keys)
        for broker_id, places in self._places.items():
            # Orders for one partition in a list would have to be merged: the backlog does so if they come one by one.
            is_list = are_different or len({keys[place] for place in places}) == len(places)
            size = MAX_PARTITIONS if is_list else 1
            lists = [self._orders.select(places[start : start + size]) for start in range(0, len(places), size)]
            self.told[broker_id] += [Orders.of(lists)] if is_list else [Orders.of([rows]) for rows in lists]
        for told in self._stops:
            for broker_id in self._begin(told.brokers):
                self.told[broker_id].append(told)
        self._orders, self._places, self._stops, self._stopped = CommonRows(), {}, [], set()

    def join_states(self) -> None:
        """Pass on the states so far."""
        if self._states:
            states = States.of(self._states)
            for broker_id in self._begin(self._informed):
                self.told[broker_id] += states
            self._states = []

    def _begin(self, brokers: tuple[int, ...] | None) -> list[int]:
        """Return those of some brokers that may be told something, each with a list of it."""
        recipients = list(self.everyone) if brokers is None else [id_ for id_ in brokers if id_ in self.everyone]
        for broker_id in recipients:
            self.told.setdefault(broker_id, [])
        return recipients
