"""What waits for one broker, merged: bounded by what exists, not by what happened.

While one request is in flight everything else merges here by (topic id, partition). The newest state in line of
authority (controller epoch, leader epoch, partition epoch) wins, the later one if they are equal; isNew and delete are
sticky. A StopReplica that deletes is never absorbed by a later LeaderAndIsr for the same name, or a recreated partition
would lose its new log: it goes first, in a request of its own. The list of live brokers goes before any LeaderAndIsr.

A request carries `MAX_PARTITIONS` at most. What goes first is: deletions as above, who is alive, LeaderAndIsr,
UpdateMetadata, StopReplica; but a kind that was overtaken `MAX_OVERTAKEN` times goes next, so that a StopReplica leaves
however many leaders are elected meanwhile. What is said of one partition keeps that order all the same: an entry is
passed over while one of its partition waits that is to arrive before it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sized
from itertools import count, islice
from typing import Final, TypeVar

from attrs import define, evolve, field, frozen

from controller.model.rounds import Publication, TellLeaderAndIsr, TellMetadata, TellStopReplica
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
from transport.metadata import LEADER_DURING_DELETE

K = TypeVar("K")
V = TypeVar("V")

Key = tuple[str, int]
"""Topic name and partition number."""

MAX_PARTITIONS: Final = 10_000
"""Of one request. With the longest names and a hundred replicas each that is a fifth of the largest frame."""

MAX_OVERTAKEN: Final = 4
"""How many requests of other kinds go before one that waits."""


def authority(state: PartitionState) -> tuple[int, int, int]:
    """Return what orders two states of one partition: the greater one is the newer."""
    return state.controller_epoch, state.leader_epoch, state.partition_epoch


def _newer(waiting: PartitionState, state: PartitionState) -> PartitionState:
    """Return what is left of two states of one topic id, `state` being the later one.

    With equal epochs the later one counts: the replica set can change without them. So does the news that the topic is
    being deleted, whose epochs are those of no leader.
    """
    is_deletion = state.leader == LEADER_DURING_DELETE
    return state if is_deletion or authority(waiting) <= authority(state) else waiting


def _merge_state(waiting: dict[Key, PartitionState], key: Key, state: PartitionState) -> None:
    before = waiting.get(key)
    if before is not None and before.topic_id == state.topic_id:
        state = _newer(before, state)
    waiting[key] = state


@frozen
class Newest:
    """States of partitions, merged once for all the brokers that are told them."""

    states: Mapping[Key, PartitionState]

    @classmethod
    def of(cls, partitions: Iterable[PartitionState]) -> Newest:
        """Merge states, later ones last."""
        states: dict[Key, PartitionState] = {}
        for state in partitions:
            _merge_state(states, (state.topic, state.partition), state)
        return cls(states)


@define
class BrokerBacklog:
    """The merged backlog of one incarnation of one broker, whose requests it puts into their envelopes."""

    controller: BrokerEndpoint
    controller_epoch: int
    broker_epoch: int
    max_partitions: int = MAX_PARTITIONS
    _first_stops: dict[tuple[Key, str], StopReplicaPartition] = field(factory=dict, init=False)
    """Deletions that go before all else, one per partition and topic id however often it comes back."""

    _live_brokers: tuple[BrokerEndpoint, ...] | None = field(default=None, init=False)
    _topics: tuple[tuple[str, str], ...] | None = field(default=None, init=False)
    """All topics, to go with the next metadata, whichever these are: they were told later than the list, or fit it."""

    _leader_and_isr: dict[Key, TellLeaderAndIsr] = field(factory=dict, init=False)
    _metadata: dict[Key, PartitionState] = field(factory=dict, init=False)
    _gone: dict[Key, PartitionState] = field(factory=dict, init=False)
    """The first deletion, where a namesake came after it: the broker may know that topic. If the namesake is deleted
    before it is told, nothing else would tell that neither is there."""

    _stops: dict[Key, dict[str, StopReplicaPartition]] = field(factory=dict, init=False)
    """Per partition and topic id: a deleted topic and its namesake may both have to be stopped."""

    _overtaken: list[int] = field(factory=lambda: [0] * 5, init=False)
    """How often each kind of request was overtaken, in the order in which they are to go."""

    _numbers: Iterator[int] = field(factory=count, init=False)

    def __len__(self) -> int:
        """Count the entries that wait."""
        parts: tuple[Sized, ...] = (
            self._first_stops,
            self._leader_and_isr,
            self._metadata,
            self._gone,
            self._stops,
        )
        return sum(map(len, parts)) + (self._live_brokers is not None or self._topics is not None)

    def add(self, publication: Publication | Newest) -> None:
        """Merge a publication in."""
        match publication:
            case TellLeaderAndIsr():
                self._add_leader_and_isr(publication)
            case Newest(states=states):
                self._add_states(states)
            case TellMetadata():
                self._add_metadata(publication)
            case TellStopReplica(partition=partition):
                self._add_stop(partition)

    def take(self) -> Request[object] | None:
        """Take out the next request, None if nothing waits."""
        kinds = (
            (self._first_stops, self._take_first_stops),
            (self._live_brokers, self._take_live_brokers),
            (self._leader_and_isr, self._take_leader_and_isr),
            (self._metadata, self._take_metadata),
            (self._stops, self._take_stops),
        )
        for turn in sorted(range(len(kinds)), key=lambda kind: self._overtaken[kind] < MAX_OVERTAKEN):
            request = kinds[turn][1]()
            if request is not None:
                for kind, (waiting, _) in enumerate(kinds):
                    self._overtaken[kind] = self._overtaken[kind] + 1 if waiting and kind != turn else 0
                return request
        return None

    # --- what each kind of request takes -------------------------------------------------------------------------

    def _take_first_stops(self) -> Request[object] | None:
        stops = _take_out(self._first_stops, self.max_partitions)
        return self._stop_request(stops) if stops else None

    def _take_live_brokers(self) -> Request[object] | None:
        """Without a leader to precede, who is alive goes with the next partitions."""
        return self._metadata_request([]) if self._live_brokers is not None and self._leader_and_isr else None

    def _take_leader_and_isr(self) -> Request[object] | None:
        if self._live_brokers is not None:
            return None
        told = _take_out(self._leader_and_isr, self.max_partitions, {key for key, _ in self._first_stops})
        if not told:
            return None
        items = tuple([LeaderAndIsrPartition(item.state, item.is_new) for item in told])
        return LeaderAndIsrRequest(
            self.controller.id, self.controller_epoch, self.broker_epoch, items, next(self._numbers)
        )

    def _take_metadata(self) -> Request[object] | None:
        states = _take_out(self._gone, self.max_partitions)
        later = self._leader_and_isr.keys() | self._gone.keys() if self._gone else self._leader_and_isr
        states += _take_out(self._metadata, self.max_partitions - len(states), later)
        is_due = bool(states) or self._live_brokers is not None or self._topics is not None
        return self._metadata_request(states) if is_due else None

    def _take_stops(self) -> Request[object] | None:
        waiting = _take_out(self._stops, self.max_partitions, self._leader_and_isr)
        return self._stop_request([stop for by_id in waiting for stop in by_id.values()]) if waiting else None

    # --- merging ------------------------------------------------------------------------------------------------

    def _add_leader_and_isr(self, told: TellLeaderAndIsr) -> None:
        state = told.state
        key = state.topic, state.partition
        if self._stops:
            by_id = self._stops.pop(key, {})
            self._first_stops |= {(key, topic_id): stop for topic_id, stop in by_id.items() if stop.delete}
        waiting = self._leader_and_isr.get(key)
        if waiting is not None and waiting.state.topic_id == state.topic_id:
            told = TellLeaderAndIsr(told.brokers, _newer(waiting.state, state), told.is_new or waiting.is_new)
        self._leader_and_isr[key] = told

    def _add_metadata(self, told: TellMetadata) -> None:
        if told.live_brokers is not None:
            self._live_brokers = told.live_brokers
        if told.topics is not None:
            self._topics = told.topics
            self._gone.clear()
            ids = dict(told.topics)
            self._metadata = {k: s for k, s in self._metadata.items() if ids.get(s.topic) in ("", s.topic_id)}
        self._add_states(Newest.of(told.partitions).states)

    def _add_states(self, states: Mapping[Key, PartitionState]) -> None:
        if self._metadata.keys().isdisjoint(states):
            self._metadata.update(states)
        else:
            for key, state in states.items():
                before = self._metadata.get(key)
                if before is not None and before.leader == LEADER_DURING_DELETE and before.topic_id != state.topic_id:
                    self._gone.setdefault(key, before)
                _merge_state(self._metadata, key, state)

    def _add_stop(self, partition: StopReplicaPartition) -> None:
        by_id = self._stops.setdefault((partition.topic, partition.partition), {})
        waiting = by_id.get(partition.topic_id)
        if waiting is not None and waiting.delete:
            partition = evolve(partition, delete=True)
        by_id[partition.topic_id] = partition

    # --- envelopes ----------------------------------------------------------------------------------------------

    def _metadata_request(self, partitions: list[PartitionState]) -> UpdateMetadataRequest:
        live, self._live_brokers = self._live_brokers, None
        topics, self._topics = self._topics, None
        epochs = self.controller_epoch, self.broker_epoch
        number = next(self._numbers)
        return UpdateMetadataRequest(
            self.controller.id, *epochs, self.controller, live, tuple(partitions), topics, number
        )

    def _stop_request(self, stops: list[StopReplicaPartition]) -> StopReplicaRequest:
        epochs = self.controller_epoch, self.broker_epoch
        return StopReplicaRequest(self.controller.id, *epochs, tuple(stops), next(self._numbers))


def _take_out(waiting: dict[K, V], limit: int, behind: Container[K] = ()) -> list[V]:
    """Take out the entries that have waited longest, but for those that are to arrive after something else."""
    keys = list(islice((key for key in waiting if key not in behind), limit))
    taken = [waiting.pop(key) for key in keys]
    if not waiting:
        waiting.clear()  # or else it keeps the room for as many as there have been
    return taken
