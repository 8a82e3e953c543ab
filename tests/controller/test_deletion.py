"""Topics that are deleted: whom it waits for, what it keeps out, and what is left in the end."""

from __future__ import annotations

import pytest
from attrs import evolve

from controller.events import (
    PartitionModifications,
    ReplicasDeleted,
    ReplicasNotDeleted,
    TopicChange,
    TopicDeletion,
    ZkPartitionReassignment,
)
from controller.partition_states import PartitionPhase
from controller.replica_states import ReplicaPhase
from controller.rounds import TellStopReplica
from tests.controller.conftest import TP, Bench
from tests.controller.meddler import Meddler, set_assignments
from transport.errors import ErrorCode
from transport.messages import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    MetadataRequest,
    MetadataResponse,
    NewTopic,
)
from transport.metadata import (
    EPOCH_DURING_DELETE,
    LEADER_DURING_DELETE,
    ReplicaAssignment,
    Stray,
    TopicPartition,
)
from transport.store import formats, paths
from transport.store.protocol import Create, Delete

SECOND = TopicPartition("orders", 1)
STARTED, SUCCESSFUL = ReplicaPhase.DELETION_STARTED, ReplicaPhase.DELETION_SUCCESSFUL
INELIGIBLE = ReplicaPhase.DELETION_INELIGIBLE


async def mark(bench: Bench, *names: str) -> None:
    await bench.store.multi([Create(paths.delete_topic(name)) for name in names])
    await bench.handle(TopicDeletion())


def replica(broker_id: int, partition: int = 0, topic: str = "orders") -> Stray:
    return Stray(f"id-of-{topic}", topic, partition, broker_id)


async def deleted(bench: Bench, *replicas: Stray) -> None:
    await bench.handle(ReplicasDeleted(tuple((item, EPOCH_DURING_DELETE) for item in replicas)))


def told_to_delete(bench: Bench) -> list[tuple[int, TopicPartition]]:
    stops = [p for p in bench.seen.published if isinstance(p, TellStopReplica)]
    assert {(stop.partition.delete, stop.partition.leader_epoch) for stop in stops} <= {(True, EPOCH_DURING_DELETE)}
    return sorted((b, TopicPartition(s.partition.topic, s.partition.partition)) for s in stops for b in s.brokers)


def phases(bench: Bench, tp: TopicPartition = TP) -> dict[int, ReplicaPhase]:
    return {broker_id: phase for (of, broker_id), phase in sorted(bench.context.replica_phases.items()) if of == tp}


async def znodes(bench: Bench, name: str = "orders") -> list[str]:
    every = [paths.topic(name), paths.topic_partitions(name), paths.topic_config(name), paths.delete_topic(name)]
    every += [paths.partition(TopicPartition(name, number)) for number in range(3)]
    every += [paths.partition_state(TopicPartition(name, number)) for number in range(3)]
    found = await bench.store.read(every)
    return [path for path, znode in zip(every, found, strict=True) if znode is not None]


def leaves_no_trace(bench: Bench, name: str = "orders") -> bool:
    context = bench.context
    replicas = [tp for tp, _ in (*context.replica_phases, *context.on_offline_dirs)]
    tps = [*context.leadership, *context.partition_phases, *context.reassigning, *replicas]
    return name not in {*context.topics, *context.deletions, *(tp.topic for tp in tps)}


@pytest.mark.requirement("D8", "D3")
async def test_brokers_delete_the_replicas_and_then_the_znodes_go(bench: Bench) -> None:
    await bench.start((1, 2), (2, 3))
    await bench.write_topic("others", (1, 2))
    await bench.handle(TopicChange())
    await bench.store.multi([Create(paths.topic_config("orders"), b"{}")])
    bench.seen.clear()
    await mark(bench, "orders")

    assert bench.context.in_phase(PartitionPhase.NON_EXISTENT) == [TP, SECOND]
    assert phases(bench) == {1: STARTED, 2: STARTED}
    assert told_to_delete(bench) == [(1, TP), (2, TP), (2, SECOND), (3, SECOND)]
    told = [state for tell in bench.seen.metadata() for state in tell.partitions if tell.brokers is None]
    assert [(state.partition, state.leader) for state in told] == [(0, LEADER_DURING_DELETE), (1, LEADER_DURING_DELETE)]
    assert bench.seen.leader_and_isr() == []

    await deleted(bench, replica(1), replica(2))
    assert phases(bench) == {1: SUCCESSFUL, 2: SUCCESSFUL}
    assert paths.topic("orders") in await znodes(bench), "its other partition is left"
    await deleted(bench, replica(2, 1), replica(3, 1))
    assert await znodes(bench) == []
    assert leaves_no_trace(bench)
    assert TopicPartition("others", 0) in bench.context.leadership
    await bench.handle(TopicChange())
    assert told_to_delete(bench) == [(1, TP), (2, TP), (2, SECOND), (3, SECOND)], "nobody is told again"


@pytest.mark.requirement("D8")
async def test_all_topics_are_deleted_together(bench: Bench) -> None:
    """KAFKA-9499: not a request per partition, nor a commit per topic."""
    names = [f"topic-{number:02}" for number in range(20)]
    for name in names:
        await bench.write_topic(name, *[(1, 2)] * 3)
    await bench.start()
    await mark(bench, *names)
    assert bench.seen.rounds == ["(delete)", "(stop)"]
    bench.seen.clear()
    await deleted(bench, *[replica(b, number, name) for name in names for number in range(3) for b in (1, 2)])
    assert bench.seen.rounds == ["remove", "remove"]
    assert all(leaves_no_trace(bench, name) for name in names)


async def test_a_topic_of_thousands_of_partitions_goes_in_commits_that_a_store_accepts(bench: Bench) -> None:
    await bench.start(*[(1,)] * 2000)
    await mark(bench, "orders")
    bench.seen.clear()
    await deleted(bench, *[replica(1, number) for number in range(2000)])
    assert bench.seen.rounds == ["remove"] * 9
    assert await bench.store.children([paths.TOPICS, paths.DELETE_TOPICS]) == [[], []]


async def test_a_topic_without_partitions_is_deleted_at_once(bench: Bench) -> None:
    await bench.start()
    await bench.write_topic("orders")
    await bench.handle(TopicChange())
    await mark(bench, "orders")
    assert await znodes(bench) == []
    assert leaves_no_trace(bench)


# --- dead brokers and failures ----------------------------------------------------------------------------------


@pytest.mark.requirement("D8", "D3")
async def test_it_waits_for_a_dead_broker_and_goes_on_when_that_is_back(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.kill(2)
    bench.seen.clear()
    await mark(bench, "orders")
    assert phases(bench) == {1: STARTED, 2: INELIGIBLE, 3: STARTED}
    await deleted(bench, replica(1), replica(3))
    assert phases(bench) == {1: SUCCESSFUL, 2: INELIGIBLE, 3: SUCCESSFUL}
    await bench.handle(TopicDeletion())
    assert told_to_delete(bench) == [(1, TP), (3, TP)], "nobody is told in vain, nor again"
    bench.seen.clear()

    await bench.revive(2)
    assert phases(bench) == {1: SUCCESSFUL, 2: STARTED, 3: SUCCESSFUL}
    assert told_to_delete(bench) == [(2, TP)]
    assert bench.seen.leader_and_isr() == [], "KAFKA-13342"
    [introduction] = [tell for tell in bench.seen.metadata() if tell.brokers == (2,)]
    assert [state.leader for state in introduction.partitions] == [LEADER_DURING_DELETE]
    await deleted(bench, replica(2))
    assert await znodes(bench) == []
    assert leaves_no_trace(bench)


@pytest.mark.requirement("D8", "D3")
async def test_a_broker_dies_after_it_was_told(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await mark(bench, "orders")
    state = await bench.read_state(TP)
    bench.seen.clear()
    await bench.kill(1)
    assert phases(bench) == {1: INELIGIBLE, 2: STARTED, 3: STARTED}
    assert await bench.read_state(TP) == state, "nobody is elected, nor taken out of an ISR"
    assert bench.seen.leader_and_isr() == []
    await deleted(bench, replica(2), replica(3))
    await bench.revive(1)
    assert told_to_delete(bench) == [(1, TP)]
    await deleted(bench, replica(1))
    assert leaves_no_trace(bench)


async def test_a_broker_that_bounced_is_told_again(bench: Bench) -> None:
    await bench.start((1, 2))
    await mark(bench, "orders")
    bench.seen.clear()
    await bench.unregister(2)
    await bench.revive(2)
    assert told_to_delete(bench) == [(2, TP)]
    assert phases(bench) == {1: STARTED, 2: STARTED}


@pytest.mark.requirement("D8", "D3")
async def test_a_replica_that_could_not_be_deleted_is_ineligible_until_it_is_tried_again(bench: Bench) -> None:
    await bench.start((1, 2))
    await mark(bench, "orders")
    await bench.handle(ReplicasNotDeleted((replica(2),)))
    assert phases(bench) == {1: STARTED, 2: INELIGIBLE}
    bench.seen.clear()
    await deleted(bench, replica(1))
    assert told_to_delete(bench) == [], "not before its time"
    await bench.handle(TopicDeletion())
    assert told_to_delete(bench) == [(2, TP)]
    await deleted(bench, replica(2))
    assert leaves_no_trace(bench)


@pytest.mark.requirement("D8")
@pytest.mark.parametrize(
    "answer",
    [
        ReplicasDeleted(((replica(2), 0),)),
        ReplicasDeleted(((Stray("another-id", "orders", 0, 2), EPOCH_DURING_DELETE),)),
        ReplicasDeleted(((replica(7), EPOCH_DURING_DELETE),)),
        ReplicasDeleted(((replica(2, 0, "unknown"), EPOCH_DURING_DELETE),)),
        ReplicasNotDeleted((Stray("another-id", "orders", 0, 2),)),
    ],
    ids=["of a reassignment", "of a namesake", "of no replica", "of no topic", "failed of a namesake"],
)
async def test_an_answer_to_something_else_says_nothing(
    bench: Bench, answer: ReplicasDeleted | ReplicasNotDeleted
) -> None:
    """KAFKA-9946."""
    await bench.start((1, 2))
    await mark(bench, "orders")
    await bench.handle(answer)
    assert phases(bench) == {1: STARTED, 2: STARTED}


# --- what it keeps out ------------------------------------------------------------------------------------------


@pytest.mark.requirement("D8")
async def test_a_reassignment_ends_with_its_topic_and_no_other_begins(bench: Bench) -> None:
    await bench.start((1, 2, 3), (1, 2))
    await bench.request_moves({TP: (4, 5, 6)})
    await bench.handle(ZkPartitionReassignment())
    assert list(bench.context.reassigning) == [TP]
    bench.seen.clear()
    await mark(bench, "orders")
    assert await bench.requested_moves() is None
    assert list(bench.context.reassigning) == []
    assert [b for b, tp in told_to_delete(bench) if tp == TP] == [1, 2, 3, 4, 5, 6]
    refusal = await bench.move(SECOND, (3, 4))
    assert (refusal.error, refusal.message) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "topic orders is being deleted",
    )
    await bench.request_moves({TP: (4, 5, 6), SECOND: (3, 4)})
    await bench.handle(ZkPartitionReassignment())
    assert await bench.requested_moves() is None
    assert bench.seen.leader_and_isr() == []


async def test_a_replica_that_was_about_to_be_added_is_deleted_too(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.crash(bench.move(TP, (2, 3)), after="A1")
    await mark(bench, "orders")
    assert phases(bench) == {1: STARTED, 2: STARTED, 3: STARTED}
    await deleted(bench, replica(1), replica(2), replica(3))
    assert leaves_no_trace(bench)


@pytest.mark.requirement("C5", "D8")
async def test_partitions_that_somebody_adds_are_taken_out_again(bench: Bench) -> None:
    """KAFKA-6612."""
    await bench.start((1, 2))
    await mark(bench, "orders")
    before = await bench.read(paths.topic("orders"))
    assert before is not None
    await bench.change_topic("orders", 1, ReplicaAssignment((3, 4)))
    await bench.handle(PartitionModifications("orders"))
    after = await bench.read(paths.topic("orders"))
    assert after is not None
    assert formats.decode_topic("orders", after.data) == formats.decode_topic("orders", before.data)
    assert bench.context.in_phase(PartitionPhase.NEW, PartitionPhase.ONLINE) == []
    await deleted(bench, replica(1), replica(2))
    assert await znodes(bench) == []


async def test_partitions_that_somebody_adds_at_the_last_moment_go_with_the_topic(bench: Bench) -> None:
    await bench.start((1, 2))
    await mark(bench, "orders")
    added = set_assignments("orders", await bench.read(paths.topic("orders")), {1: ReplicaAssignment((3, 4))})
    bench.runner.store = Meddler(bench.store, paths.topic("orders"), [added])
    await deleted(bench, replica(1), replica(2))
    assert await znodes(bench) == []


@pytest.mark.requirement("D8")
async def test_its_leader_cannot_change_the_isr(bench: Bench) -> None:
    await bench.start((1, 2))
    await mark(bench, "orders")
    item = AlterPartitionItem("orders", "id-of-orders", 0, 0, (1,), 0)
    request = AlterPartitionRequest(1, bench.context.brokers[1].epoch, (item,))
    [result] = (await bench.ask(request, AlterPartitionResponse)).partitions
    assert result.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_the_cluster_is_described_with_what_a_deletion_waits_for(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.kill(2)
    await mark(bench, "orders")
    for names in (None, ("orders",)):
        [state] = (await bench.ask(MetadataRequest(names), MetadataResponse)).partitions
        assert (state.leader, state.replicas, state.offline_replicas) == (LEADER_DURING_DELETE, (1, 2), (2,))
    assert (await bench.ask(MetadataRequest(("others",)), MetadataResponse)).partitions == ()


# --- markers ----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("D8")
async def test_a_marker_of_an_unknown_topic_is_removed(bench: Bench) -> None:
    await bench.start((1, 2))
    await mark(bench, "unknown")
    assert await bench.store.children([paths.DELETE_TOPICS]) == [[]]
    assert bench.seen.published == []


async def test_a_marker_of_a_topic_that_is_not_known_yet_is_kept_for_later(bench: Bench) -> None:
    await bench.start()
    await bench.write_topic("orders", (1, 2))
    await mark(bench, "orders")
    assert bench.context.deletions == {}
    await bench.handle(TopicChange())
    await bench.handle(TopicDeletion())
    assert told_to_delete(bench) == [(1, TP), (2, TP)]


@pytest.mark.requirement("D8")
async def test_nobody_is_elected(bench: Bench) -> None:
    await bench.start((1, 2))
    await mark(bench, "orders")
    for election_type in ElectionType:
        request = ElectLeadersRequest(election_type, ((TP.topic, TP.partition),))
        [result] = (await bench.ask(request, ElectLeadersResponse)).partitions
        assert result.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        everything = await bench.ask(ElectLeadersRequest(election_type, None), ElectLeadersResponse)
        assert everything.partitions == ()


async def ask_to_delete(bench: Bench, *names: str) -> list[tuple[str, ErrorCode]]:
    response = await bench.ask(DeleteTopicsRequest(names), DeleteTopicsResponse)
    return [(topic.name, topic.error) for topic in response.topics]


@pytest.mark.requirement("D8")
async def test_an_administrator_asks_once_or_twice(bench: Bench) -> None:
    await bench.start((1, 2))
    unknown = ("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert await ask_to_delete(bench, "orders", "unknown") == [("orders", ErrorCode.NONE), unknown]
    assert await bench.store.children([paths.DELETE_TOPICS]) == [["orders"]]
    assert await ask_to_delete(bench, "orders") == [("orders", ErrorCode.NONE)], "the marker is there"
    await bench.handle(TopicDeletion())
    assert await ask_to_delete(bench, "orders") == [("orders", ErrorCode.NONE)], "the deletion is under way"
    await deleted(bench, replica(1), replica(2))
    assert await ask_to_delete(bench, "orders") == [("orders", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


@pytest.mark.requirement("D8")
async def test_where_topics_must_not_be_deleted_markers_go(bench: Bench) -> None:
    await bench.start((1, 2))
    bench.context.config = evolve(bench.context.config, delete_topic_enable=False)
    assert await ask_to_delete(bench, "orders") == [("orders", ErrorCode.TOPIC_DELETION_DISABLED)]
    await mark(bench, "orders", "unknown")
    assert await bench.store.children([paths.DELETE_TOPICS]) == [[]]
    assert bench.context.deletions == {}
    assert bench.seen.published == []


async def test_a_topic_that_is_being_deleted_cannot_be_created(bench: Bench) -> None:
    await bench.start((1, 2))
    await mark(bench, "orders")
    request = CreateTopicsRequest((NewTopic("orders", 1, 1),))
    [result] = (await bench.ask(request, CreateTopicsResponse)).topics
    text = "topic orders is being deleted: wait until it is gone"
    assert (result.error, result.message) == (ErrorCode.TOPIC_ALREADY_EXISTS, text)


# --- the next controller ----------------------------------------------------------------------------------------


@pytest.mark.requirement("D7", "D8")
@pytest.mark.parametrize("moment", ["(delete)", "(stop)", "deleted", "remove", "second remove"])
async def test_the_next_controller_goes_on_from_wherever_the_last_one_died(bench: Bench, moment: str) -> None:
    await bench.start((1, 2), (2, 3))
    everywhere = [replica(1), replica(2), replica(2, 1), replica(3, 1)]
    if moment.startswith("("):
        await bench.crash(mark(bench, "orders"), after=moment)
    else:
        await mark(bench, "orders")
        if moment == "remove":
            await bench.crash(deleted(bench, *everywhere), after="remove")
        elif moment == "second remove":
            path = paths.partition(SECOND)
            bench.runner.store = Meddler(bench.store, path, [Delete(paths.partition_state(SECOND))])
            await bench.crash(deleted(bench, *everywhere), after="remove")
            bench.runner.store = bench.store
        else:
            await deleted(bench, replica(1))
    bench.seen.clear()

    await bench.fail_over()
    assert bench.seen.leader_and_isr() == []
    assert "elect" not in bench.seen.rounds
    assert "create" not in bench.seen.rounds
    assert told_to_delete(bench) == [(1, TP), (2, TP), (2, SECOND), (3, SECOND)]
    told = [state for tell in bench.seen.metadata() for state in tell.partitions if tell.brokers is None]
    assert {(state.partition, state.leader) for state in told} == {(0, -2), (1, -2)}
    await deleted(bench, *everywhere)
    assert await znodes(bench) == []
    assert leaves_no_trace(bench)


@pytest.mark.requirement("D7", "D8")
async def test_the_next_controller_waits_for_the_dead_and_has_the_others_delete_at_once(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.write_topic("others", (1, 2))
    await bench.handle(TopicChange())
    await bench.unregister(2)
    await bench.store.multi([Create(paths.delete_topic("orders"))])
    bench.seen.clear()
    await bench.fail_over()
    assert list(bench.context.deletions) == ["orders"]
    assert phases(bench) == {1: STARTED, 2: INELIGIBLE, 3: STARTED}
    assert told_to_delete(bench) == [(1, TP), (3, TP)]
    assert {tell.state.topic for tell in bench.seen.leader_and_isr()} == {"others"}


async def test_a_topic_that_was_never_led_is_deleted(bench: Bench) -> None:
    """KAFKA-6650."""
    await bench.start((1, 2), brokers=())
    await mark(bench, "orders")
    await bench.revive(1, 2)
    assert told_to_delete(bench) == [(1, TP), (2, TP)]
    assert bench.seen.leader_and_isr() == []
    await deleted(bench, replica(1), replica(2))
    assert await znodes(bench) == []


# --- namesakes --------------------------------------------------------------------------------------------------


async def create(bench: Bench, topic_id: str, *replicas: int) -> None:
    data = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment(replicas)}, topic_id))
    await bench.store.multi([Create(paths.topic("orders"), data)])


@pytest.mark.requirement("D8")
async def test_who_creates_the_topic_again_has_a_new_one(bench: Bench) -> None:
    await bench.start((1, 2))
    await mark(bench, "orders")
    await deleted(bench, replica(1), replica(2))
    await create(bench, "another-id", 2, 3)
    await bench.handle(PartitionModifications("orders"))
    await bench.handle(TopicChange())
    await bench.handle(TopicDeletion())
    await deleted(bench, replica(2))
    assert (await bench.read_state(TP)).isr == (2, 3)
    assert bench.context.topic_id("orders") == "another-id"
    bench.seen.clear()
    await bench.fail_over()
    assert told_to_delete(bench) == []


@pytest.mark.requirement("D8")
@pytest.mark.parametrize("is_seen", [True, False])
async def test_a_namesake_that_somebody_put_in_its_place_is_not_harmed(bench: Bench, is_seen: bool) -> None:
    await bench.start((1, 2))
    await mark(bench, "orders")
    await bench.delete_topic("orders", 1)
    await create(bench, "another-id", 2, 3)
    if is_seen:
        await bench.handle(PartitionModifications("orders"))
    await deleted(bench, replica(1), replica(2))
    await bench.handle(TopicChange())
    await bench.handle(TopicDeletion())
    assert (await bench.read_state(TP)).isr == (2, 3)
    assert bench.context.deletions == {}
    assert paths.delete_topic("orders") not in await znodes(bench)


@pytest.mark.requirement("D8")
async def test_a_topic_whose_znodes_somebody_removes_meanwhile_leaves_no_marker(bench: Bench) -> None:
    await bench.start((1, 2))
    await mark(bench, "orders")
    await bench.delete_topic("orders", 1)
    await bench.handle(TopicChange())
    assert await znodes(bench) == []
    assert leaves_no_trace(bench)
