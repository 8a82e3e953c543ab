"""The queue for one broker: merging, and the order of sending."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from controller.channels.backlog import BrokerBacklog
from controller.model.rounds import Publication, TellLeaderAndIsr, TellMetadata, TellStopReplica
from tests.kit.told import add_singly, tell_order, tell_stop
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

CONTROLLER = BrokerEndpoint(1001, "127.0.0.1", 1)
CONTROLLER_EPOCH, BROKER_EPOCH = 3, 77
LIVE = (BrokerEndpoint(1, "h1", 9091), BrokerEndpoint(2, "h2", 9092))
FEWER = LIVE[:1]

STATE = PartitionState("orders", "id-1", 0, CONTROLLER_EPOCH, 1, 5, (1, 2), 7, (1, 2))
OTHER = replace(STATE, partition=1)
NAMESAKE = replace(STATE, topic_id="id-2", leader_epoch=0, partition_epoch=0)


def lead(state: PartitionState, *, is_new: bool = False) -> TellLeaderAndIsr:
    return tell_order((1,), state, is_new=is_new)


def know(*states: PartitionState, live: tuple[BrokerEndpoint, ...] | None = None) -> TellMetadata:
    return TellMetadata(None, states, live)


def stop(state: PartitionState, *, delete: bool, epoch: int = 6) -> TellStopReplica:
    return tell_stop((1,), stopped(state, delete=delete, epoch=epoch))


def stopped(state: PartitionState, *, delete: bool, epoch: int = 6) -> StopReplicaPartition:
    return StopReplicaPartition(state.topic, state.topic_id, state.partition, epoch, delete)


def backlog(*publications: Publication) -> BrokerBacklog:
    waiting = BrokerBacklog(CONTROLLER, CONTROLLER_EPOCH, BROKER_EPOCH)
    add_singly(waiting, *publications)
    return waiting


def drain(waiting: BrokerBacklog) -> list[Request[object]]:
    requests = []
    while (request := waiting.take()) is not None:
        requests.append(request)
    assert len(waiting) == 0
    return requests


def leader_and_isr(*items: tuple[PartitionState, bool]) -> LeaderAndIsrRequest:
    partitions = tuple(LeaderAndIsrPartition(state, is_new) for state, is_new in items)
    return LeaderAndIsrRequest(CONTROLLER.id, CONTROLLER_EPOCH, BROKER_EPOCH, partitions)


def metadata(states: Sequence[PartitionState], live: tuple[BrokerEndpoint, ...] | None) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(CONTROLLER.id, CONTROLLER_EPOCH, BROKER_EPOCH, CONTROLLER, live, tuple(states))


def stop_replica(*partitions: StopReplicaPartition) -> StopReplicaRequest:
    return StopReplicaRequest(CONTROLLER.id, CONTROLLER_EPOCH, BROKER_EPOCH, partitions)


def test_nothing_waits_at_first() -> None:
    assert drain(backlog()) == []


def test_one_request_of_each_kind_in_the_order_leader_and_isr_metadata_stop() -> None:
    third = replace(STATE, partition=2)
    waiting = backlog(stop(third, delete=False), know(STATE), lead(OTHER), know(OTHER), lead(STATE))
    assert len(waiting) == 5
    assert drain(waiting) == [
        leader_and_isr((OTHER, False), (STATE, False)),
        metadata([STATE, OTHER], None),
        stop_replica(stopped(third, delete=False)),
    ]


def test_the_live_brokers_go_before_any_leader() -> None:
    requests = drain(backlog(lead(STATE), know(STATE), know(live=LIVE), lead(OTHER)))
    assert requests == [metadata([], LIVE), leader_and_isr((STATE, False), (OTHER, False)), metadata([STATE], None)]


def test_the_live_brokers_go_with_the_partitions_when_no_leader_waits() -> None:
    assert drain(backlog(know(live=LIVE), know(STATE), know(live=FEWER))) == [metadata([STATE], FEWER)]


def test_nobody_alive_is_news_too() -> None:
    assert drain(backlog(know(live=LIVE), know(live=()))) == [metadata([], ())]


def test_the_newest_state_wins_by_controller_then_leader_then_partition_epoch() -> None:
    newest_last = [
        STATE,
        replace(STATE, partition_epoch=8),
        replace(STATE, leader_epoch=6, partition_epoch=1),
        replace(STATE, controller_epoch=4, leader_epoch=1, partition_epoch=1),
    ]
    for older, newer in pairwise(newest_last):
        for first, second in ((older, newer), (newer, older)):
            assert drain(backlog(lead(first), lead(second))) == [leader_and_isr((newer, False))]
            assert drain(backlog(know(first), know(second))) == [metadata([newer], None)]


def test_of_two_states_with_equal_epochs_the_later_one_wins() -> None:
    # The replica set lives in another znode than the epochs.
    later = replace(STATE, replicas=(1, 2, 3))
    assert drain(backlog(lead(STATE), lead(later))) == [leader_and_isr((later, False))]
    assert drain(backlog(know(STATE), know(later))) == [metadata([later], None)]


def test_is_new_is_sticky() -> None:
    newer = replace(STATE, leader_epoch=6)
    assert drain(backlog(lead(STATE, is_new=True), lead(newer))) == [leader_and_isr((newer, True))]
    assert drain(backlog(lead(STATE), lead(newer, is_new=True))) == [leader_and_isr((newer, True))]


def test_is_new_ends_with_the_request_that_carried_it() -> None:
    waiting = backlog(lead(STATE, is_new=True))
    waiting.take()
    add_singly(waiting, lead(STATE))
    assert drain(waiting) == [leader_and_isr((STATE, False))]


def test_delete_is_sticky_and_the_later_epoch_counts() -> None:
    for first, second in ((True, False), (False, True)):
        waiting = backlog(stop(STATE, delete=first, epoch=6), stop(STATE, delete=second, epoch=7))
        assert drain(waiting) == [stop_replica(stopped(STATE, delete=True, epoch=7))]


def test_a_stop_follows_the_leader_and_isr_that_came_before_it() -> None:
    for delete in (False, True):
        assert drain(backlog(lead(STATE), stop(STATE, delete=delete))) == [
            leader_and_isr((STATE, False)),
            stop_replica(stopped(STATE, delete=delete)),
        ]


def test_a_deletion_goes_before_a_later_leader_and_isr_of_the_same_name() -> None:
    for successor in (NAMESAKE, replace(STATE, leader_epoch=7)):
        waiting = backlog(know(live=LIVE), stop(STATE, delete=True), stop(OTHER, delete=True), lead(successor))
        assert drain(waiting) == [
            stop_replica(stopped(STATE, delete=True)),
            metadata([], LIVE),
            leader_and_isr((successor, False)),
            stop_replica(stopped(OTHER, delete=True)),
        ]


def test_a_recreated_partition_gets_nothing_of_the_one_before_it() -> None:
    waiting = backlog(lead(STATE, is_new=True), stop(STATE, delete=True), lead(NAMESAKE), know(STATE), know(NAMESAKE))
    assert drain(waiting) == [
        stop_replica(stopped(STATE, delete=True)),
        leader_and_isr((NAMESAKE, False)),
        metadata([NAMESAKE], None),
    ]


def test_a_stop_without_deletion_is_superseded_by_a_later_leader_and_isr() -> None:
    again = replace(STATE, leader_epoch=7)
    assert drain(backlog(stop(STATE, delete=False), lead(again))) == [leader_and_isr((again, False))]


def test_a_topic_and_its_namesake_may_both_have_to_be_deleted() -> None:
    waiting = backlog(stop(STATE, delete=True), stop(NAMESAKE, delete=True, epoch=1))
    assert drain(waiting) == [
        stop_replica(stopped(STATE, delete=True), stopped(NAMESAKE, delete=True, epoch=1)),
    ]


def test_the_news_that_a_topic_is_being_deleted_outranks_its_epochs() -> None:
    deleted = replace(STATE, leader=LEADER_DURING_DELETE, leader_epoch=0, partition_epoch=0)
    assert drain(backlog(know(STATE), know(deleted))) == [metadata([deleted], None)]


def test_the_backlog_is_bounded_by_what_exists() -> None:
    waiting = backlog()
    for epoch in range(10, 1000, 10):
        state = replace(STATE, leader_epoch=epoch, partition_epoch=epoch)
        for publication in (
            know(state, live=LIVE),
            lead(state, is_new=True),
            stop(state, delete=False, epoch=epoch + 1),
            stop(state, delete=True, epoch=epoch + 2),
        ):
            add_singly(waiting, publication)
    # One entry for each of: the live brokers, the partition's state, its metadata, its deletions.
    assert len(waiting) <= 5


def test_a_request_carries_a_limited_number_of_partitions() -> None:
    states = [replace(STATE, partition=number) for number in range(25)]
    waiting = BrokerBacklog(CONTROLLER, CONTROLLER_EPOCH, BROKER_EPOCH, max_partitions=10)
    for state in states:
        for publication in (lead(state), know(state), stop(replace(state, topic="gone"), delete=True)):
            add_singly(waiting, publication)
    requests = drain(waiting)
    sizes = [(type(request), len(getattr(request, "partitions"))) for request in requests]  # noqa: B009
    kinds = (LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest)
    assert sorted(sizes, key=str) == sorted([(kind, size) for kind in kinds for size in (10, 10, 5)], key=str)


def test_a_stop_gets_its_turn_however_many_leaders_are_elected_meanwhile() -> None:
    waiting = backlog(stop(OTHER, delete=True))
    sent = []
    for epoch in range(6, 16):
        add_singly(waiting, lead(replace(STATE, leader_epoch=epoch)))
        add_singly(waiting, know(replace(STATE, leader_epoch=epoch)))
        add_singly(waiting, know(live=LIVE))
        sent.append(waiting.take())
    assert stop_replica(stopped(OTHER, delete=True)) in sent


def test_a_partition_is_not_stopped_before_it_is_led_however_often_its_stop_is_overtaken() -> None:
    waiting = BrokerBacklog(CONTROLLER, CONTROLLER_EPOCH, BROKER_EPOCH, max_partitions=1)
    for number in range(20):
        add_singly(waiting, lead(replace(STATE, partition=number)))
        add_singly(waiting, know(replace(STATE, partition=number)))
    last = replace(STATE, partition=19)
    add_singly(waiting, stop(last, delete=True))
    requests = drain(waiting)
    assert requests.index(leader_and_isr((last, False))) < requests.index(stop_replica(stopped(last, delete=True)))
    for number in range(20):
        state = replace(STATE, partition=number)
        assert requests.index(leader_and_isr((state, False))) < requests.index(metadata([state], None))


def test_a_partition_that_is_deleted_first_is_not_led_before() -> None:
    waiting = BrokerBacklog(CONTROLLER, CONTROLLER_EPOCH, BROKER_EPOCH, max_partitions=1)
    states = [replace(STATE, partition=number) for number in range(20)]
    namesakes = [replace(state, topic_id="id-2") for state in states]
    for namesake in reversed(namesakes):
        add_singly(waiting, lead(namesake, is_new=True))
    for state in states:
        add_singly(waiting, stop(state, delete=True))
    for namesake in namesakes:
        add_singly(waiting, lead(namesake, is_new=True))
    requests = drain(waiting)
    for state, namesake in zip(states, namesakes, strict=True):
        deleted = requests.index(stop_replica(stopped(state, delete=True)))
        assert deleted < requests.index(leader_and_isr((namesake, True)))


def test_all_topics_go_with_the_next_metadata_and_what_waits_of_others_does_not() -> None:
    gone, unknown = replace(STATE, topic="payments"), replace(STATE, topic="set-aside")
    topics = (("orders", "id-2"), ("set-aside", ""))
    waiting = backlog(know(STATE, gone, unknown), TellMetadata(None, (), topics=topics), know(NAMESAKE))
    assert drain(waiting) == [replace(metadata([unknown, NAMESAKE], None), topics=topics)]
    waiting = backlog(know(STATE), TellMetadata(None, (), topics=()))
    assert len(waiting) == 1, "that there are none is news, too"
    assert drain(waiting) == [replace(metadata([], None), topics=())]


def test_who_is_told_all_topics_is_not_told_of_an_earlier_deletion_as_well() -> None:
    deleted = replace(STATE, leader=LEADER_DURING_DELETE, leader_epoch=0, partition_epoch=0)
    assert drain(backlog(know(deleted), know(NAMESAKE))) == [metadata([deleted, NAMESAKE], None)]
    topics = (("orders", "id-2"),)
    waiting = backlog(know(deleted), know(NAMESAKE), TellMetadata(None, (), topics=topics))
    assert drain(waiting) == [replace(metadata([NAMESAKE], None), topics=topics)]


def test_requests_are_numbered_in_the_order_in_which_they_leave() -> None:
    waiting = BrokerBacklog(CONTROLLER, CONTROLLER_EPOCH, BROKER_EPOCH)
    numbers = []
    for _ in range(2):
        deletion = StopReplicaPartition("t", "id", 0, 5, delete=True)
        add_singly(waiting, tell_stop((1,), deletion), lead(STATE), TellMetadata(None, (STATE,)))
        while (request := waiting.take()) is not None:
            assert isinstance(request, StopReplicaRequest | LeaderAndIsrRequest | UpdateMetadataRequest)
            numbers.append(request.number)
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= 6
