"""The merged backlog of one broker, whose size is bounded by the number of partitions, not by the number of events.

While one request is in flight, everything else is merged here by (topic id, partition). The state with the highest
authority (controller epoch, leader epoch, partition epoch) wins, or the later one if they are equal; isNew and delete
are sticky. A StopReplica that deletes is never absorbed by a later LeaderAndIsr for the same name, because a recreated
partition would then lose its new log: the deletion is sent first, in a request of its own. The list of live brokers is
sent before any LeaderAndIsr.

A request carries at most `MAX_PARTITIONS`. Requests are sent in this order: deletions as above, live brokers,
LeaderAndIsr, UpdateMetadata, StopReplica. A kind that was overtaken `MAX_OVERTAKEN` times is sent next, so that a
StopReplica is not starved by a stream of elections. Even then, messages about one partition keep their order: an entry
is skipped while another entry of its partition, which must arrive first, is waiting.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Set as AbstractSet, Sized
from itertools import chain, count, islice
from typing import Any, Final, TypeVar

from attrs import define, field
from msgspec.structs import replace

from controller.channels.blocks import (
    MAX_PARTITIONS,
    Block,
    Key,
    Orders,
    States,
    Stops,
    is_recreation,
    key_of,
    key_of_stop,
    newer_order,
    newer_state,
)
from controller.channels.waiting import Waiting
from controller.model.rounds import TellMetadata
from transport.messages import (
    BrokerEndpoint,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    PartitionState,
    Request,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)

K = TypeVar("K")
V = TypeVar("V")


Told = Orders | Stops | States | TellMetadata
"""Something that a broker is told, or what several are told together."""

MAX_OVERTAKEN: Final = 4
"""The number of requests of other kinds that may be sent before one that waits."""


@define
class BrokerBacklog:
    """The merged backlog of one broker incarnation. `take` returns complete requests."""

    controller: BrokerEndpoint
    controller_epoch: int
    broker_epoch: int
    max_partitions: int = MAX_PARTITIONS
    numbers: Iterator[int] = field(factory=count)
    """The numbers of requests, by which the broker tells a late copy of an earlier one."""

    _first_stops: dict[tuple[Key, str], StopReplicaPartition] = field(factory=dict, init=False)
    """Deletions sent before everything else, one per partition and topic id, however often the topic is recreated."""

    _live_brokers: tuple[BrokerEndpoint, ...] | None = field(default=None, init=False)
    _topics: tuple[tuple[str, str], ...] | None = field(default=None, init=False)
    """All topics, sent with the next UpdateMetadata: its states arrived after the list or agree with it."""

    _leader_and_isr: Waiting[LeaderAndIsrPartition] = field(init=False)
    _metadata: Waiting[PartitionState] = field(init=False)
    _gone: dict[Key, PartitionState] = field(factory=dict, init=False)
    """The first deletion of a topic that was recreated under its name. The broker may know the deleted topic, and if
    the new one is deleted before the broker hears of it, no other entry says that the first one no longer exists."""

    _stops: Waiting[StopReplicaPartition] = field(init=False)
    _namesakes: dict[tuple[Key, str], StopReplicaPartition] = field(factory=dict, init=False)
    """Stops of topics recreated under the name of one that a stop waits of: both leave in one request."""

    _overtaken: list[int] = field(factory=lambda: [0] * 5, init=False)
    """The number of times each kind of request was overtaken, in the order of sending."""

    def __attrs_post_init__(self) -> None:
        self._leader_and_isr = Waiting(self.max_partitions)
        self._metadata = Waiting(self.max_partitions)
        self._stops = Waiting(self.max_partitions)

    def waits_to_tell(self, topics: Container[str]) -> bool:
        """Return whether brokers' metadata of one of these topics waits to be sent."""
        return any(name in topics for name in chain(self._metadata.topics(), (name for name, _ in self._gone)))

    def __len__(self) -> int:
        """Return the number of waiting entries."""
        parts: tuple[Sized, ...] = (
            self._first_stops,
            self._leader_and_isr,
            self._metadata,
            self._gone,
            self._stops,
            self._namesakes,
        )
        return sum(map(len, parts)) + (self._live_brokers is not None or self._topics is not None)

    def add(self, told: Told) -> None:
        """Merge what the broker is told into the waiting entries."""
        match told:
            case States():
                self._metadata.add(told.blocks, self._replace_state)
            case Orders():
                self._add_orders(told)
            case TellMetadata():
                self._add_metadata(told)
            case Stops():
                self._stops.add(told.blocks, self._replace_stop)

    def take(self) -> Request[object] | None:
        """Remove and return the next request, or None if nothing waits."""
        if not len(self):
            return None
        kinds = (
            (self._first_stops, self._take_first_stops),
            (self._live_brokers, self._take_live_brokers),
            (self._leader_and_isr, self._take_leader_and_isr),
            (self._metadata, self._take_metadata),
            (self._stops, self._take_stops),
        )
        # A stable sort: kinds overtaken too often come first, the others keep their order.
        for turn in sorted(range(len(kinds)), key=lambda kind: self._overtaken[kind] < MAX_OVERTAKEN):
            request = kinds[turn][1]()
            if request is not None:
                for kind, (waiting, _) in enumerate(kinds):
                    self._overtaken[kind] = self._overtaken[kind] + 1 if waiting and kind != turn else 0
                return request
        return None

    # --- what each kind of request takes -------------------------------------------------------------------------

    def _take_first_stops(self) -> Request[object] | None:
        stops = tuple(_take_out(self._first_stops, self.max_partitions))
        return self._stop_request(stops) if stops else None

    def _take_live_brokers(self) -> Request[object] | None:
        """Return the live brokers in a request of their own, only if LeaderAndIsr waits.

        Otherwise the list travels with the next metadata.
        """
        return self._metadata_request(()) if self._live_brokers is not None and self._leader_and_isr else None

    def _take_leader_and_isr(self) -> Request[object] | None:
        # A LeaderAndIsr may name a leader that the broker does not know yet, so the list must arrive first.
        if self._live_brokers is not None:
            return None
        orders = self._leader_and_isr.take(self.max_partitions, {key for key, _ in self._first_stops})
        if not orders:
            return None
        epochs = self.controller_epoch, self.broker_epoch
        return LeaderAndIsrRequest(self.controller.id, *epochs, orders, next(self.numbers))

    def _take_metadata(self) -> Request[object] | None:
        gone = tuple(_take_out(self._gone, self.max_partitions))
        # States wait for the LeaderAndIsr of their partition, and for the deletion of an earlier topic of that name.
        later = {*self._leader_and_isr, *self._gone} if self._gone else self._leader_and_isr
        states = self._metadata.take(self.max_partitions - len(gone), later)
        # A block stays what it is: joined with something else, it would have to be packed again.
        states = gone + states if gone else states
        is_due = bool(states) or self._live_brokers is not None or self._topics is not None
        return self._metadata_request(states) if is_due else None

    def _take_stops(self) -> Request[object] | None:
        stops = self._stops.take(self.max_partitions, self._leader_and_isr)
        if self._namesakes:
            stops += tuple(self._take_namesakes(set(map(key_of_stop, stops))))
        return self._stop_request(stops) if stops else None

    # --- merging ------------------------------------------------------------------------------------------------

    def _add_orders(self, orders: Orders) -> None:
        # A newer LeaderAndIsr supersedes waiting stops of its partition, except deletions, which are sent first.
        for block in orders.blocks if self._stops else ():
            superseded = [*self._stops.remove(block), *self._take_namesakes(block)]
            self._first_stops |= {(key_of_stop(stop), stop.topic_id): stop for stop in superseded if stop.delete}
        self._leader_and_isr.add(orders.blocks, newer_order)

    def _add_metadata(self, told: TellMetadata) -> None:
        if told.live_brokers is not None:
            self._live_brokers = told.live_brokers
        if told.topics is not None:
            self._topics = told.topics
            self._gone.clear()
            # States of topics that are not in the list are obsolete; an empty id in the list matches any topic id.
            ids = dict(told.topics)
            self._metadata.keep(lambda state: ids.get(state.topic) in ("", state.topic_id))
        for states in States.of(told.partitions):
            self._metadata.add(states.blocks, self._replace_state)

    def _replace_state(self, waiting: PartitionState, state: PartitionState) -> PartitionState:
        """Return what replaces a state that waits when a later one of its partition comes."""
        if is_recreation(waiting, state):
            self._gone.setdefault(key_of(waiting), waiting)
        return newer_state(waiting, state)

    def _replace_stop(self, waiting: StopReplicaPartition, stop: StopReplicaPartition) -> StopReplicaPartition:
        """Return what replaces a stop that waits when a later one of its partition comes."""
        if waiting.topic_id != stop.topic_id:
            key = key_of_stop(stop), stop.topic_id
            self._namesakes[key] = _newer_stop(self._namesakes.get(key, stop), stop)
            return waiting
        return _newer_stop(waiting, stop)

    def _take_namesakes(self, keys: Block[Any] | AbstractSet[Key]) -> list[StopReplicaPartition]:
        return [self._namesakes.pop(each) for each in list(self._namesakes) if each[0] in keys]

    # --- envelopes ----------------------------------------------------------------------------------------------

    def _metadata_request(self, partitions: tuple[PartitionState, ...]) -> UpdateMetadataRequest:
        live, self._live_brokers = self._live_brokers, None
        topics, self._topics = self._topics, None
        epochs = self.controller_epoch, self.broker_epoch
        number = next(self.numbers)
        return UpdateMetadataRequest(self.controller.id, *epochs, self.controller, live, partitions, topics, number)

    def _stop_request(self, stops: tuple[StopReplicaPartition, ...]) -> StopReplicaRequest:
        epochs = self.controller_epoch, self.broker_epoch
        return StopReplicaRequest(self.controller.id, *epochs, stops, next(self.numbers))


def _newer_stop(waiting: StopReplicaPartition, stop: StopReplicaPartition) -> StopReplicaPartition:
    return replace(stop, delete=True) if waiting.delete else stop


def _take_out(waiting: dict[K, V], limit: int, behind: Container[K] = ()) -> list[V]:
    """Remove and return the entries that have waited longest, except those whose keys are in `behind`."""
    keys = list(islice((key for key in waiting if key not in behind), limit))
    taken = [waiting.pop(key) for key in keys]
    if not waiting:
        waiting.clear()  # frees the memory that an emptied dictionary keeps
    return taken
