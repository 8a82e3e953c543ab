"""Operations that a pending deletion rejects, and requests for deletions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from attrs import evolve

from controller.events import PartitionModifications, TopicChange, TopicDeletion, ZkPartitionReassignment
from controller.handlers.topics import refresh_topics
from controller.model.state_machines import PartitionPhase
from controller.node import alarms
from tests.controller.conftest import TP, Bench
from tests.controller.deletions import (
    SECOND,
    STARTED,
    deleted,
    leaves_no_trace,
    mark,
    phases,
    replica,
    start_and_mark,
    told_to_delete,
    znodes,
)
from tests.controller.meddler import Meddler, set_assignments
from tests.kit.passing_store import PassingStore
from transport.errors import ErrorCode
from transport.messages import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    MetadataRequest,
    MetadataResponse,
    NewPartitions,
    NewTopic,
)
from transport.metadata import LEADER_DURING_DELETE, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Committed, Create, Delete, Op, Rejected
from transport.store.tree import Access

pytestmark = pytest.mark.usefixtures("all_transitions_are_legal")


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
    await bench.crash(bench.move(TP, (2, 3)), after="U1")
    await mark(bench, "orders")
    assert phases(bench) == {1: STARTED, 2: STARTED, 3: STARTED}
    await deleted(bench, replica(1), replica(2), replica(3))
    assert leaves_no_trace(bench)


@pytest.mark.requirement("C5", "D8")
async def test_partitions_that_somebody_adds_are_taken_out_again(bench: Bench) -> None:
    """KAFKA-6612."""
    await start_and_mark(bench, (1, 2))
    before = await bench.znode(paths.topic("orders"))
    await bench.change_topic("orders", 1, ReplicaAssignment((3, 4)))
    await bench.handle(PartitionModifications("orders"))
    after = await bench.znode(paths.topic("orders"))
    assert formats.decode_topic("orders", after.data) == formats.decode_topic("orders", before.data)
    assert bench.context.in_phase(PartitionPhase.NEW, PartitionPhase.ONLINE) == []
    await deleted(bench, replica(1), replica(2))
    assert await znodes(bench) == []


@pytest.mark.requirement("C5", "D8")
async def test_partitions_that_another_event_has_read_are_not_started_any_more(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.change_topic("orders", 1, ReplicaAssignment((3, 4)))
    await bench.run(refresh_topics(bench.context, ["orders"]))  # as a move does that others overtake
    await mark(bench, "orders")
    await bench.handle(PartitionModifications("orders"))
    assert bench.context.in_phase(PartitionPhase.NEW, PartitionPhase.ONLINE) == []
    await deleted(bench, *[replica(broker, number) for number, pair in enumerate([(1, 2), (3, 4)]) for broker in pair])
    assert await znodes(bench) == []


async def test_no_partitions_are_added_whoever_removes_the_marker(bench: Bench) -> None:
    await start_and_mark(bench, (1, 2))
    await bench.store.multi([Delete(paths.delete_topic("orders"))])
    request = CreatePartitionsRequest((NewPartitions("orders", 2),))
    [result] = (await bench.ask(request, CreatePartitionsResponse)).topics
    assert (result.error, result.message) == (ErrorCode.INVALID_TOPIC_EXCEPTION, "topic orders is being deleted")


async def test_partitions_that_somebody_adds_at_the_last_moment_go_with_the_topic(bench: Bench) -> None:
    await start_and_mark(bench, (1, 2))
    added = set_assignments("orders", await bench.read(paths.topic("orders")), {1: ReplicaAssignment((3, 4))})
    bench.runner.store = Meddler(bench.store, paths.topic("orders"), [added])
    await deleted(bench, replica(1), replica(2))
    assert await znodes(bench) == []


@pytest.mark.requirement("D8")
async def test_its_leader_cannot_change_the_isr(bench: Bench) -> None:
    await start_and_mark(bench, (1, 2))
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


# --- markers ----------------------------------------------------------------------------------------------------------


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
    assert alarms.alarms(bench.context, TopicChange()) == [(0.0, TopicDeletion())]
    await bench.handle(TopicDeletion())
    assert alarms.alarms(bench.context, TopicChange()) == []
    assert told_to_delete(bench) == [(1, TP), (2, TP)]


@pytest.mark.requirement("D8")
async def test_nobody_is_elected(bench: Bench) -> None:
    await start_and_mark(bench, (1, 2))
    for election_type in ElectionType:
        request = ElectLeadersRequest(election_type, (TP, TopicPartition("orders", 9)))
        refused, unknown = (await bench.ask(request, ElectLeadersResponse)).partitions
        assert (refused.error, refused.message) == (ErrorCode.INVALID_TOPIC_EXCEPTION, "topic orders is being deleted")
        assert unknown.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
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


async def start_with_earlier_marker(bench: Bench) -> None:
    """Know a topic that was created after a marker of its name, which has not been read yet."""
    await bench.start()
    await bench.store.multi([Create(paths.delete_topic("orders"))])
    await bench.write_topic("orders", (1, 2))
    await bench.handle(TopicChange())


async def is_deleted(bench: Bench) -> bool:
    await bench.handle(TopicDeletion())
    return told_to_delete(bench) == [(1, TP), (2, TP)]


@pytest.mark.requirement("D8")
@pytest.mark.parametrize("is_hidden", [False, True])
async def test_a_request_replaces_the_marker_of_an_earlier_topic(bench: Bench, is_hidden: bool) -> None:
    await start_with_earlier_marker(bench)
    if is_hidden:
        bench.seen.zookeeper.tree.allow(paths.delete_topic("orders"), Access.NONE)
    assert await ask_to_delete(bench, "orders") == [("orders", ErrorCode.NONE)]
    assert await is_deleted(bench)


async def test_a_marker_of_an_earlier_topic_may_go_before_it_is_replaced(bench: Bench) -> None:
    await start_with_earlier_marker(bench)
    path = paths.delete_topic("orders")
    bench.runner.store = meddler = Meddler(bench.store, path, [Delete(path)], earlier=1)
    assert await ask_to_delete(bench, "orders") == [("orders", ErrorCode.NONE)]
    assert meddler.overtaken == 1
    assert await is_deleted(bench)


class OnlyCreating(PassingStore):
    """A session that may create markers and not delete them."""

    async def multi(self, ops: Sequence[Op], *, known: Collection[str] = ()) -> Committed:
        """Do all of `ops` or nothing."""
        for index, op in enumerate(ops):
            if isinstance(op, Delete) and op.path == paths.delete_topic("orders"):
                raise Rejected(index, op.path, "its ACL forbids it")
        return await super().multi(ops, known=known)


async def test_a_marker_that_cannot_be_replaced_is_an_error(bench: Bench) -> None:
    await start_with_earlier_marker(bench)
    bench.runner.store = OnlyCreating(bench.store)
    await bench.handle(TopicDeletion())
    [answer] = (await bench.ask(DeleteTopicsRequest(("orders",)), DeleteTopicsResponse)).topics
    assert answer.error is ErrorCode.OPERATION_NOT_ATTEMPTED
    assert f"delete {paths.delete_topic('orders')}, and ask again" in (answer.message or "")
    await bench.store.multi([Delete(paths.delete_topic("orders"))])
    assert await ask_to_delete(bench, "orders") == [("orders", ErrorCode.NONE)]
    assert await is_deleted(bench)


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
    await start_and_mark(bench, (1, 2))
    request = CreateTopicsRequest((NewTopic("orders", 1, 1),))
    [result] = (await bench.ask(request, CreateTopicsResponse)).topics
    text = "topic orders is being deleted: wait until it is gone"
    assert (result.error, result.message) == (ErrorCode.TOPIC_ALREADY_EXISTS, text)
