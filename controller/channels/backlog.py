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

from collections.abc import Container, Iterable, Iterator, Mapping, Sized
from itertools import chain, count, islice
from typing import Final, TypeVar

from attrs import define, field, frozen
from msgspec.structs import replace

from controller.model.rounds import Publication, TellLeaderAndIsr, TellLeaderships, TellMetadata, TellStopReplica
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
"""The limit of one request. With the longest names and a hundred replicas each, this fills a fifth of a frame."""

MAX_OVERTAKEN: Final = 4
"""The number of requests of other kinds that may be sent before one that waits."""


def authority(state: PartitionState) -> tuple[int, int, int]:
    """Return the sort key that orders the states of one partition: the newer state has the greater one."""
    return state.controller_epoch, state.leader_epoch, state.partition_epoch


def _newer(waiting: PartitionState, state: PartitionState) -> PartitionState:
    """Return the newer of two states of one topic id, `state` being the later arrival.

    With equal epochs the later arrival wins, because the replica set can change without a new epoch. So does a state
    that says that the topic is being deleted: its epochs are those of no leader and cannot be compared.
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
    """Partition states, merged once for all the brokers to which they are sent."""

    states: Mapping[Key, PartitionState]

    @classmethod
    def of(cls, partitions: Iterable[PartitionState]) -> Newest:
        """Merge states given in the order of their arrival."""
        states: dict[Key, PartitionState] = {}
        for state in partitions:
            _merge_state(states, (state.topic, state.partition), state)
        return cls(states)


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

    _leader_and_isr: dict[Key, LeaderAndIsrPartition] = field(factory=dict, init=False)
    _metadata: dict[Key, PartitionState] = field(factory=dict, init=False)
    _gone: dict[Key, PartitionState] = field(factory=dict, init=False)
    """The first deletion of a topic that was recreated under its name. The broker may know the deleted topic, and if
    the new one is deleted before the broker hears of it, no other entry says that the first one no longer exists."""

    _stops: dict[Key, dict[str, StopReplicaPartition]] = field(factory=dict, init=False)
    """Per partition and topic id, because a deleted topic and the one recreated under its name may both need a stop."""

    _overtaken: list[int] = field(factory=lambda: [0] * 5, init=False)
    """The number of times each kind of request was overtaken, in the order of sending."""

    def waits_to_tell(self, topics: Container[str]) -> bool:
        """Return whether brokers' metadata of one of these topics waits to be sent."""
        return any(name in topics for name, _ in chain(self._metadata, self._gone))

    def __len__(self) -> int:
        """Return the number of waiting entries."""
        parts: tuple[Sized, ...] = (
            self._first_stops,
            self._leader_and_isr,
            self._metadata,
            self._gone,
            self._stops,
        )
        return sum(map(len, parts)) + (self._live_brokers is not None or self._topics is not None)

    def add(self, publication: Publication | Newest) -> None:
        """Merge a publication into the waiting entries."""
        match publication:
            case TellLeaderAndIsr(state=state, is_new=is_new):
                self._add_leader_and_isr(state, is_new)
            case TellLeaderships(states=told, is_new=is_new):
                for state in told:
                    self._add_leader_and_isr(state, is_new)
            case Newest(states=states):
                self._add_states(states)
            case TellMetadata():
                self._add_metadata(publication)
            case TellStopReplica(partition=partition):
                self._add_stop(partition)

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
        stops = _take_out(self._first_stops, self.max_partitions)
        return self._stop_request(stops) if stops else None

    def _take_live_brokers(self) -> Request[object] | None:
        """Return the live brokers in a request of their own, only if LeaderAndIsr waits.

        Otherwise the list travels with the next metadata.
        """
        return self._metadata_request([]) if self._live_brokers is not None and self._leader_and_isr else None

    def _take_leader_and_isr(self) -> Request[object] | None:
        # A LeaderAndIsr may name a leader that the broker does not know yet, so the list must arrive first.
        if self._live_brokers is not None:
            return None
        told = _take_out(self._leader_and_isr, self.max_partitions, {key for key, _ in self._first_stops})
        if not told:
            return None
        epochs = self.controller_epoch, self.broker_epoch
        return LeaderAndIsrRequest(self.controller.id, *epochs, tuple(told), next(self.numbers))

    def _take_metadata(self) -> Request[object] | None:
        states = _take_out(self._gone, self.max_partitions)
        # States wait for the LeaderAndIsr of their partition, and for the deletion of an earlier topic of that name.
        later = self._leader_and_isr.keys() | self._gone.keys() if self._gone else self._leader_and_isr
        states += _take_out(self._metadata, self.max_partitions - len(states), later)
        is_due = bool(states) or self._live_brokers is not None or self._topics is not None
        return self._metadata_request(states) if is_due else None

    def _take_stops(self) -> Request[object] | None:
        waiting = _take_out(self._stops, self.max_partitions, self._leader_and_isr)
        return self._stop_request([stop for by_id in waiting for stop in by_id.values()]) if waiting else None

    # --- merging ------------------------------------------------------------------------------------------------

    def _add_leader_and_isr(self, state: PartitionState, is_new: bool) -> None:  # noqa: FBT001 - called in bulk
        key = state.topic, state.partition
        # A newer LeaderAndIsr supersedes waiting stops of its partition, except deletions, which are sent first.
        if self._stops:
            by_id = self._stops.pop(key, {})
            self._first_stops |= {(key, topic_id): stop for topic_id, stop in by_id.items() if stop.delete}
        waiting = self._leader_and_isr.get(key)
        if waiting is not None and waiting.state.topic_id == state.topic_id:
            state, is_new = _newer(waiting.state, state), is_new or waiting.is_new
        self._leader_and_isr[key] = LeaderAndIsrPartition(state, is_new)

    def _add_metadata(self, told: TellMetadata) -> None:
        if told.live_brokers is not None:
            self._live_brokers = told.live_brokers
        if told.topics is not None:
            self._topics = told.topics
            self._gone.clear()
            # States of topics that are not in the list are obsolete; an empty id in the list matches any topic id.
            ids = dict(told.topics)
            self._metadata = {k: s for k, s in self._metadata.items() if ids.get(s.topic) in ("", s.topic_id)}
        self._add_states(Newest.of(told.partitions).states)

    def _add_states(self, states: Mapping[Key, PartitionState]) -> None:
        # With nothing to merge, which is common in large rounds, one update of the dictionary suffices.
        if self._metadata.keys().isdisjoint(states):
            self._metadata.update(states)
        else:
            for key, state in states.items():
                before = self._metadata.get(key)
                # A deletion is about to be replaced by a topic recreated under the same name.
                if before is not None and before.leader == LEADER_DURING_DELETE and before.topic_id != state.topic_id:
                    self._gone.setdefault(key, before)
                _merge_state(self._metadata, key, state)

    def _add_stop(self, partition: StopReplicaPartition) -> None:
        by_id = self._stops.setdefault((partition.topic, partition.partition), {})
        waiting = by_id.get(partition.topic_id)
        if waiting is not None and waiting.delete:
            partition = replace(partition, delete=True)
        by_id[partition.topic_id] = partition

    # --- envelopes ----------------------------------------------------------------------------------------------

    def _metadata_request(self, partitions: list[PartitionState]) -> UpdateMetadataRequest:
        live, self._live_brokers = self._live_brokers, None
        topics, self._topics = self._topics, None
        epochs = self.controller_epoch, self.broker_epoch
        number = next(self.numbers)
        return UpdateMetadataRequest(
            self.controller.id, *epochs, self.controller, live, tuple(partitions), topics, number
        )

    def _stop_request(self, stops: list[StopReplicaPartition]) -> StopReplicaRequest:
        epochs = self.controller_epoch, self.broker_epoch
        return StopReplicaRequest(self.controller.id, *epochs, tuple(stops), next(self.numbers))


def _take_out(waiting: dict[K, V], limit: int, behind: Container[K] = ()) -> list[V]:
    """Remove and return the entries that have waited longest, except those whose keys are in `behind`."""
    keys = list(islice((key for key in waiting if key not in behind), limit))
    taken = [waiting.pop(key) for key in keys]
    if not waiting:
        waiting.clear()  # frees the memory that an emptied dictionary keeps
    return taken
