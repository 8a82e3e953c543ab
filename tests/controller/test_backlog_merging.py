"""Merged delivery, with repetitions, leaves a broker in the state of unmerged delivery."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from operator import attrgetter

from attrs import define, field
from hypothesis import event, example, given, strategies as st
from msgspec.structs import replace

from controller.channels.addressing import addressed
from controller.channels.backlog import BrokerBacklog
from controller.channels.blocks import MAX_PARTITIONS
from controller.model.rounds import Publication, TellMetadata
from tests.controller.backlog_broker import ModelBroker
from tests.kit.told import add_singly, tell_order, tell_stop
from transport.messages import (
    BrokerEndpoint,
    LeaderAndIsrRequest,
    PartitionState,
    Request,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from transport.metadata import EPOCH_DURING_DELETE, LEADER_DURING_DELETE, TopicPartition

BROKER = 1
CONTROLLER = BrokerEndpoint(1001, "127.0.0.1", 1)
TPS = (TopicPartition("orders", 0), TopicPartition("orders", 1))


@define
class MessageHistory:
    """The messages of a controller to one broker in a valid order: epochs rise, a replica begins as new."""

    states: dict[TopicPartition, PartitionState] = field(factory=dict)
    held: set[TopicPartition] = field(factory=set)
    _numbers: Iterator[int] = field(factory=count)

    def publications(self, what: str, tp: TopicPartition, *, flag: bool) -> list[Publication]:
        """Return what an event makes the controller publish; `flag` chooses between two forms of it."""
        if what == "live brokers":
            return [TellMetadata(None, (), (BrokerEndpoint(BROKER, f"host-{next(self._numbers)}", 9091),))]
        state = self.states.get(tp)
        return self._create(tp) if state is None else self._event(what, state, flag=flag)

    def _event(self, what: str, state: PartitionState, *, flag: bool) -> list[Publication]:
        match what:
            case "elect":
                return self._lead(replace(state, leader=1 + flag, leader_epoch=state.leader_epoch + 1))
            case "change isr":
                return self._know(
                    replace(state, isr=(1, 2) if flag else (1,), partition_epoch=state.partition_epoch + 1)
                )
            case "resend":
                return self._lead(replace(state, replicas=(1, 2, next(self._numbers))) if flag else state)
            case "stop":
                return self._stop(state, delete=flag)
            case "delete topic":
                return self._delete_topic(state, recreate=flag)
        raise AssertionError(what)

    def _know(self, state: PartitionState) -> list[Publication]:
        self.states[state.tp] = state
        return [TellMetadata(None, (state,))]

    def _create(self, tp: TopicPartition) -> list[Publication]:
        return self._lead(PartitionState(tp.topic, f"id-{next(self._numbers)}", tp.partition, 3, 1, 0, (1,), 0, (1, 2)))

    def _lead(self, state: PartitionState) -> list[Publication]:
        tp = state.tp
        is_new = tp not in self.held
        known = self.states.get(tp)
        if is_new and known is not None and known.topic_id == state.topic_id:
            # A replica that was stopped is told under an epoch that it does not have (step A1 of a reassignment).
            state = replace(state, leader_epoch=known.leader_epoch + 1)
        self.held.add(tp)
        return [tell_order((BROKER,), state, is_new=is_new), *self._know(state)]

    def _stop(self, state: PartitionState, *, delete: bool) -> list[Publication]:
        state = replace(state, leader_epoch=state.leader_epoch + 1, partition_epoch=state.partition_epoch + 1)
        if delete:
            self.held.discard(state.tp)
        return [*self._know(state), tell_stop((BROKER,), stop_of(state, state.leader_epoch, delete=delete))]

    def _delete_topic(self, state: PartitionState, *, recreate: bool) -> list[Publication]:
        tp = state.tp
        del self.states[tp]
        self.held.discard(tp)
        gone = replace(state, leader=LEADER_DURING_DELETE, leader_epoch=0, partition_epoch=0)
        stop = stop_of(state, EPOCH_DURING_DELETE, delete=True)
        deletion: list[Publication] = [TellMetadata(None, (gone,)), tell_stop((BROKER,), stop)]
        return deletion + (self._create(tp) if recreate else [])


def stop_of(state: PartitionState, epoch: int, *, delete: bool) -> StopReplicaPartition:
    return StopReplicaPartition(state.topic, state.topic_id, state.partition, epoch, delete)


def requests(waiting: BrokerBacklog) -> Iterator[Request[object]]:
    while (request := waiting.take()) is not None:
        yield request


@define
class Deliveries:
    """The same publications on two ways: merged while they wait, and each by itself at once."""

    waiting: BrokerBacklog = field(factory=lambda: BrokerBacklog(CONTROLLER, 3, 77))
    merged: ModelBroker = field(factory=ModelBroker)
    unmerged: ModelBroker = field(factory=ModelBroker)
    live: BrokerEndpoint | None = None
    """This broker in the latest list of live brokers that was published."""

    published: int = 0
    delivered: int = 0

    def publish(self, publication: Publication) -> None:
        """Let a publication wait on one way, and deliver it on the other."""
        add_singly(self.waiting, publication)
        self._deliver_alone(publication)

    def publish_together(self, publications: list[Publication]) -> None:
        """Let publications wait in blocks on one way, and deliver each on the other."""
        for told in addressed(publications, (BROKER,)).get(BROKER, ()):
            self.waiting.add(told)
        for publication in publications:
            self._deliver_alone(publication)

    def _deliver_alone(self, publication: Publication) -> None:
        self.published += 1
        if isinstance(publication, TellMetadata) and publication.live_brokers is not None:
            self.live = publication.live_brokers[0]
        alone = BrokerBacklog(CONTROLLER, 3, 77)
        add_singly(alone, publication)
        for request in requests(alone):
            self.unmerged.deliver(request)

    def deliver(self, request: Request[object], times: int) -> None:
        """Deliver a request that waited, again if its answer is lost."""
        self.delivered += 1
        if isinstance(request, LeaderAndIsrRequest):
            assert self.merged.metadata.broker(BROKER) == self.live, "who is alive has not arrived before a leader"
        for _ in range(times):
            self.merged.deliver(request)


def logs(broker: ModelBroker) -> dict[TopicPartition, str]:
    return {tp: log.topic_id for tp, log in broker.logs.items()}


def known(broker: ModelBroker) -> dict[TopicPartition, PartitionState]:
    return {tp: state for tp in TPS if (state := broker.metadata.partition(tp)) is not None}


happenings = st.tuples(
    st.sampled_from(["elect", "change isr", "resend", "stop", "delete topic", "live brokers"]),
    st.sampled_from(TPS),
    st.booleans(),
)
times = st.integers(1, 3)
"""The number of times that a request arrives: one whose answer is lost is sent again before any other."""


DELETE = "delete topic", TPS[1], False
ELECT = "elect", TPS[1], False
FIRST_DELETE = "delete topic", TPS[0], False
FIRST_ELECT = "elect", TPS[0], False
LIVE = "live brokers", TPS[0], False


Script = list[tuple[str, TopicPartition, bool] | int]


# The broker knows a topic; that is deleted, and so is a namesake, before it is told of either.
@example([ELECT, 1, 1, DELETE, ELECT, DELETE], 1, 1)
@example([ELECT, 1, 1, DELETE, ELECT, DELETE, ELECT, DELETE], 1, MAX_PARTITIONS)
@given(st.lists(st.one_of(happenings, times), max_size=40), times, st.sampled_from([1, MAX_PARTITIONS]))
def test_merged_delivery_ends_where_unmerged_delivery_does(
    script: Script, last_times: int, max_partitions: int
) -> None:
    history, both = MessageHistory(), Deliveries(BrokerBacklog(CONTROLLER, 3, 77, max_partitions))
    for entry in script:
        if not isinstance(entry, int):
            what, tp, flag = entry
            for publication in history.publications(what, tp, flag=flag):
                both.publish(publication)
        elif (request := both.waiting.take()) is not None:
            both.deliver(request, entry)
    require_same_end(history, both, last_times)


@given(st.lists(st.one_of(happenings, times), max_size=40), times, st.sampled_from([1, 2, 20, MAX_PARTITIONS]))
def test_what_is_published_together_ends_there_as_well(script: Script, last_times: int, max_partitions: int) -> None:
    history, both = MessageHistory(), Deliveries(BrokerBacklog(CONTROLLER, 3, 77, max_partitions))
    together: list[Publication] = []
    for entry in script:
        if not isinstance(entry, int):
            what, tp, flag = entry
            together += history.publications(what, tp, flag=flag)
            continue
        both.publish_together(together)
        together = []
        if (request := both.waiting.take()) is not None:
            both.deliver(request, entry)
    both.publish_together(together)
    require_same_end(history, both, last_times)


def require_same_end(history: MessageHistory, both: Deliveries, last_times: int) -> None:
    for request in requests(both.waiting):
        both.deliver(request, last_times)

    event("merged" if both.delivered < both.published else "not merged")
    merged, unmerged = both.merged, both.unmerged
    assert merged.hosted == unmerged.hosted
    assert logs(merged) == logs(unmerged)
    for tp, log in merged.logs.items():
        assert log.epochs <= unmerged.logs[tp].epochs, "what a deletion removed came back"
    assert known(merged) == known(unmerged) == history.states
    assert merged.metadata.broker(BROKER) == unmerged.metadata.broker(BROKER) == both.live


# Both deletions wait while their partitions come back.
@example([ELECT, DELETE, LIVE, FIRST_ELECT, FIRST_DELETE, FIRST_ELECT, ELECT])
@given(st.lists(happenings, max_size=30))
def test_what_is_published_together_is_sent_as_if_it_came_one_by_one(
    script: list[tuple[str, TopicPartition, bool]],
) -> None:
    history = MessageHistory()
    published = [each for what, tp, flag in script for each in history.publications(what, tp, flag=flag)]
    together, one_by_one = BrokerBacklog(CONTROLLER, 3, 77), BrokerBacklog(CONTROLLER, 3, 77)
    for told in addressed(published, (BROKER,)).get(BROKER, ()):
        together.add(told)
    add_singly(one_by_one, *published)
    assert len(together) == len(one_by_one)
    assert list(map(by_partition, requests(together))) == list(map(by_partition, requests(one_by_one)))


def by_partition(request: Request[object]) -> Request[object]:
    """Return a request with its entries sorted by partition. Only the order of those of one partition has a meaning."""
    match request:
        case LeaderAndIsrRequest():
            return replace(request, partitions=tuple(sorted(request.partitions, key=lambda item: item.state.tp)))
        case StopReplicaRequest() | UpdateMetadataRequest():
            return replace(request, partitions=tuple(sorted(request.partitions, key=attrgetter("tp"))))
    return request
