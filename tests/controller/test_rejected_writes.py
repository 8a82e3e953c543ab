"""A write that an ACL forbids is never taken for done: it is an error, or what depends on it does not happen."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from controller.config import ControllerConfig
from controller.events import (
    BrokerChange,
    LogDirEventNotification,
    PartitionModifications,
    PreferredReplicaElection,
    RequestEvent,
    StrayDeletion,
    TopicChange,
    TopicDeletion,
)
from controller.handlers.failover import failover
from controller.model.context import ControllerContext
from controller.node import alarms
from tests.controller import deletions
from tests.controller.conftest import TP, Bench
from tests.controller.deletions import replica
from tests.kit.told import Stop
from transport.errors import ApiError, ErrorCode
from transport.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    LeaderOrder,
)
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Delete, Op, Set
from transport.store.tree import Access

ACCESS = pytest.mark.parametrize("access", [Access.READ, Access.NONE], ids=lambda access: access.name)


def allow(bench: Bench, path: str, access: Access = Access.ALL) -> None:
    bench.seen.zookeeper.tree.allow(path, access)


async def write(bench: Bench, *ops: Op) -> None:
    await bench.store.multi(ops)


# --- producer ids -----------------------------------------------------------------------------------------------


def asks_for_ids(bench: Bench, broker_id: int) -> AllocateProducerIdsRequest:
    return AllocateProducerIdsRequest(broker_id, bench.context.brokers[broker_id].epoch)


@ACCESS
async def test_a_block_of_ids_that_cannot_be_recorded_is_not_given(bench: Bench, access: Access) -> None:
    await bench.start(brokers=(1, 2))
    first = await bench.ask(asks_for_ids(bench, 1), AllocateProducerIdsResponse)
    allow(bench, paths.PRODUCER_IDS, access)
    for broker_id in (1, 2):
        with pytest.raises(ApiError, match=paths.PRODUCER_IDS):
            await bench.handle(RequestEvent(asks_for_ids(bench, broker_id)))
    allow(bench, paths.PRODUCER_IDS)
    await bench.fail_over()
    second = await bench.ask(asks_for_ids(bench, 2), AllocateProducerIdsResponse)
    assert (first.start, second.start) == (0, 1_000)


# --- requests to move -------------------------------------------------------------------------------------------


async def stands_in_list(bench: Bench) -> None:
    """Let an old tool ask for a target that the partition has already, in a list that is closed to the controller."""
    await bench.start((1, 2, 3), (1, 2, 3))
    other = TopicPartition("orders", 1)
    await bench.request_moves({TP: (1, 2, 3), other: (4, 5, 6)})


async def test_a_target_is_refused_while_a_request_for_another_cannot_be_removed(bench: Bench) -> None:
    await stands_in_list(bench)
    allow(bench, paths.REASSIGN_PARTITIONS, Access.READ)
    answer = await bench.move(TP, (4, 5, 6))
    assert answer.error is ErrorCode.OPERATION_NOT_ATTEMPTED
    assert paths.REASSIGN_PARTITIONS in answer.message
    await bench.fail_over()
    assert bench.context.assignment(TP) == ReplicaAssignment((1, 2, 3))
    allow(bench, paths.REASSIGN_PARTITIONS)
    assert (await bench.move(TP, (4, 5, 6))).error is ErrorCode.NONE
    await bench.fail_over()
    assert bench.context.assignment(TP).target_replicas == (4, 5, 6)


async def test_a_target_is_refused_while_requests_can_be_neither_read_nor_removed(bench: Bench) -> None:
    await stands_in_list(bench)
    allow(bench, paths.REASSIGN_PARTITIONS, Access.NONE)
    allow(bench, "/admin", Access.READ)
    assert (await bench.move(TP, (4, 5, 6))).error is ErrorCode.OPERATION_NOT_ATTEMPTED
    allow(bench, "/admin")
    # A list that cannot be read may be a request of today: it is not removed unread.
    assert (await bench.move(TP, (4, 5, 6))).error is ErrorCode.OPERATION_NOT_ATTEMPTED
    allow(bench, paths.REASSIGN_PARTITIONS)
    assert (await bench.move(TP, (4, 5, 6))).error is ErrorCode.NONE
    await bench.fail_over()
    assert bench.context.assignment(TP).target_replicas == (4, 5, 6)


async def test_an_order_is_refused_while_a_request_for_another_cannot_be_removed(bench: Bench) -> None:
    await stands_in_list(bench)
    allow(bench, paths.REASSIGN_PARTITIONS, Access.READ)
    request = ElectLeadersRequest(ElectionType.PREFERRED, (), (LeaderOrder(*TP, (2, 1, 3)),))
    [result] = (await bench.ask(request, ElectLeadersResponse)).partitions
    assert result.error is ErrorCode.OPERATION_NOT_ATTEMPTED
    assert bench.context.assignment(TP) == ReplicaAssignment((1, 2, 3))


async def test_a_topic_stays_while_a_request_would_move_the_next_one_of_its_name(bench: Bench) -> None:
    await stands_in_list(bench)
    allow(bench, "/admin", Access.READ)
    await deletions.mark(bench, "orders")
    for broker_id in (1, 2, 3):
        await deletions.deleted(bench, replica(broker_id), replica(broker_id, 1))
    assert "orders" in bench.context.deletions
    allow(bench, "/admin")
    await bench.handle(TopicDeletion())
    assert await bench.read(paths.topic("orders")) is None
    assert await bench.read(paths.REASSIGN_PARTITIONS) is None


# --- strays -----------------------------------------------------------------------------------------------------


def deleted_on(bench: Bench) -> set[int]:
    return {id_ for p in bench.seen.published if isinstance(p, Stop) and p.partition.delete for id_ in p.brokers}


async def leave_strays(bench: Bench) -> None:
    """Leave strays on 2 and 3, which somebody assigns again past the controller, and close their records."""
    await bench.start((1, 2, 3))
    assert (await bench.move(TP, (1,))).error is ErrorCode.NONE
    assert list(bench.context.strays) == [replica(2), replica(3)]
    allow(bench, paths.STRAYS, Access.READ)
    await bench.change_topic("orders", 0, ReplicaAssignment((1, 2, 3)))
    bench.seen.clear()


async def test_a_replica_that_is_assigned_again_is_not_deleted_though_its_record_stays(bench: Bench) -> None:
    await leave_strays(bench)
    for _ in range(2):
        await bench.fail_over()
        await bench.handle(StrayDeletion())
        await bench.kill(2)
        await bench.revive(2)
        assert deleted_on(bench) == set()
        assert await deletions.strays(bench) == [replica(2), replica(3)]
        assert not bench.context.strays
    assert (alarms.CLOSED_SECONDS, StrayDeletion()) in alarms.alarms(bench.context, BrokerChange())
    allow(bench, paths.STRAYS)
    await bench.handle(StrayDeletion())
    assert await deletions.strays(bench) == []
    assert not bench.context.closed.strays
    assert deleted_on(bench) == set()


async def test_an_ignored_stray_that_is_left_again_is_deleted(bench: Bench) -> None:
    await leave_strays(bench)
    await bench.fail_over()
    await bench.write_state(TP, replace(bench.context.leadership[TP], isr=(1, 2, 3)))
    await bench.fail_over()
    bench.seen.clear()
    assert (await bench.move(TP, (1, 2))).error is ErrorCode.NONE
    assert list(bench.context.strays) == [replica(3)]
    assert deleted_on(bench) == {3}
    await deletions.deleted(bench, replica(3))
    # It is deleted, and cannot be forgotten: the order is repeated, which does no harm.
    assert list(bench.context.strays) == [replica(3)]
    again = alarms.alarms(bench.context, deletions.obeyed(replica(3)))
    assert (alarms.CLOSED_SECONDS, StrayDeletion()) in again
    allow(bench, paths.STRAYS)
    await deletions.deleted(bench, replica(3))
    assert await deletions.strays(bench) == [replica(2)]


async def test_no_replica_is_assigned_where_a_stray_cannot_be_recalled(bench: Bench) -> None:
    await bench.start((1, 2, 3))
    await bench.move(TP, (1,))
    allow(bench, paths.STRAYS, Access.READ)
    assert (await bench.move(TP, (1, 2))).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await bench.read_assignment(TP) == ReplicaAssignment((1,))
    await bench.fail_over()
    assert bench.context.assignment(TP) == ReplicaAssignment((1,))


async def test_the_replicas_of_a_topic_that_somebody_removed_are_deleted_though_they_cannot_be_recorded(
    bench: Bench,
) -> None:
    await bench.start((1, 2, 3))
    allow(bench, paths.STRAYS, Access.READ)
    await bench.delete_topic("orders", 1)
    with capture_logs() as logs:
        await bench.handle(TopicChange())
    assert deleted_on(bench) == {1, 2, 3}
    assert any("cannot be recorded" in log["event"] for log in logs)
    assert deletions.leaves_no_trace(bench)
    # One that fails is sent the order again.
    bench.seen.clear()
    await bench.handle(StrayDeletion())
    assert deleted_on(bench) == {1, 2, 3}


@pytest.mark.parametrize("is_assigned", [True, False])
async def test_a_record_older_than_another_system_deletes_nothing_though_it_stays(
    bench: Bench, is_assigned: bool
) -> None:
    config = ControllerConfig(bench.context.controller.id, kafka=True)
    bench.context = ControllerContext(bench.context.controller, 1, 1, config=config)
    bench.runner.context = bench.context
    await write(bench, Create(paths.stray(replica(2))), Create(paths.CONTROLLER, ephemeral=True))
    await bench.write_topic("orders", (1, 2) if is_assigned else (1, 3))
    allow(bench, paths.STRAYS, Access.READ)
    await bench.run(failover(bench.context, iter(())))
    assert (list(bench.context.strays) == []) is is_assigned
    assert await deletions.strays(bench) == [replica(2)]


# --- markers ----------------------------------------------------------------------------------------------------


async def test_a_marker_that_stays_deletes_no_later_topic(bench: Bench) -> None:
    await bench.start((1, 2))
    await deletions.mark(bench, "orders")
    await bench.delete_topic("orders", 1)
    allow(bench, paths.DELETE_TOPICS, Access.READ)
    await bench.handle(TopicChange())
    assert await bench.read(paths.delete_topic("orders")) is not None
    allow(bench, paths.STRAYS)
    await deletions.create(bench, "a-new-id", 1, 2)
    for _ in range(2):
        await bench.handle(TopicChange())
        await bench.handle(TopicDeletion())
        assert "orders" in bench.context.topics
        assert "orders" not in bench.context.deletions
        await bench.fail_over()
    allow(bench, paths.DELETE_TOPICS)
    await bench.handle(TopicDeletion())
    assert await bench.read(paths.delete_topic("orders")) is None
    # From then on it can be deleted.
    await deletions.mark(bench, "orders")
    assert "orders" in bench.context.deletions


# --- storage ----------------------------------------------------------------------------------------------------


async def lose_data(bench: Bench, path: str, access: Access) -> None:
    """Let 2 come back without its data while a path is closed."""
    await bench.start((1, 2), storage_id="s")
    allow(bench, path, access)
    await bench.kill(2)
    await bench.revive(2, storage_id="another")


@pytest.mark.parametrize(
    ("path", "access"),
    [
        (paths.storage_id(2), Access.READ),
        (paths.partition_state(TP), Access.READ),
        (paths.partition_state(TP), Access.NONE),
    ],
)
async def test_a_broker_without_its_data_waits_until_that_can_be_written(
    bench: Bench, path: str, access: Access
) -> None:
    await lose_data(bench, path, access)
    for _ in range(2):
        assert 2 not in bench.context.brokers
        assert bench.context.closed.brokers == {2}
        assert (alarms.CLOSED_SECONDS, BrokerChange()) in alarms.alarms(bench.context, BrokerChange())
        assert (await bench.znode(paths.storage_id(2))).data == formats.encode_storage_id("s")
        await bench.fail_over()
    allow(bench, path)
    await bench.handle(BrokerChange())
    assert 2 in bench.context.brokers
    assert bench.context.closed.brokers == frozenset()
    assert (await bench.znode(paths.storage_id(2))).data == formats.encode_storage_id("another")
    assert (await bench.read_state(TP)).isr == (1,)


async def test_a_broker_without_its_data_waits_while_the_partitions_of_a_topic_are_hidden(bench: Bench) -> None:
    await bench.write_topic("hidden", (2, 3))
    await bench.start((1, 2), storage_id="s")
    allow(bench, paths.topic("hidden"), Access.NONE)
    await bench.fail_over()
    await bench.kill(2)
    await bench.revive(2, storage_id="another")
    assert bench.context.closed.brokers == {2}
    allow(bench, paths.topic("hidden"))
    await bench.handle(TopicChange())
    await bench.handle(BrokerChange())
    assert 2 in bench.context.brokers
    assert (await bench.read_state(TopicPartition("hidden", 0))).isr == (3,)


async def test_a_broker_without_its_data_comes_back_once_its_only_replica_is_no_longer_hidden(bench: Bench) -> None:
    await bench.write_topic("hidden", (2,))
    await bench.start((1, 2), storage_id="s")
    hidden = TopicPartition("hidden", 0)
    allow(bench, paths.partition_state(hidden), Access.NONE)
    await bench.fail_over()
    await bench.kill(2)
    await bench.revive(2, storage_id="another")
    assert bench.context.closed.brokers == {2}
    allow(bench, paths.partition_state(hidden))
    await bench.handle(BrokerChange())
    assert 2 in bench.context.brokers
    assert (await bench.read_state(hidden)).isr == ()


async def test_a_storage_that_is_seen_first_is_admitted_though_it_cannot_be_recorded(
    bench: Bench,
) -> None:
    await bench.start((1, 2))
    allow(bench, paths.STORAGE_IDS, Access.READ)
    await bench.kill(2)
    with capture_logs() as logs:
        await bench.revive(2, storage_id="s")
    assert 2 in bench.context.brokers
    assert any("will not be noticed" in log["event"] for log in logs)


# --- topics, moves, and what tools write ------------------------------------------------------------------------


async def test_a_topic_that_cannot_be_written_back_is_looked_at_again(bench: Bench) -> None:
    await bench.start((1, 2))
    znode = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment((5, 6))}, None))
    await write(bench, Set(paths.topic("orders"), znode, -1))
    allow(bench, paths.topic("orders"), Access.READ)
    await bench.handle(PartitionModifications("orders"))
    assert bench.context.assignment(TP) == ReplicaAssignment((1, 2))
    later = alarms.alarms(bench.context, PartitionModifications("orders"))
    assert (alarms.CLOSED_SECONDS, TopicChange()) in later
    allow(bench, paths.topic("orders"))
    await bench.handle(TopicChange())
    assert await bench.read_assignment(TP) == ReplicaAssignment((1, 2))
    assert not bench.context.closed_topics


@ACCESS
async def test_moves_wait_where_their_znodes_cannot_be_created(bench: Bench, access: Access) -> None:
    await bench.start((1, 2, 3))
    await write(bench, Delete(paths.REASSIGNMENTS))
    allow(bench, "/admin", access)
    assert (await bench.move(TP, (4, 5, 6))).error is not ErrorCode.NONE
    allow(bench, "/admin")
    assert (await bench.move(TP, (4, 5, 6))).error is ErrorCode.NONE


@pytest.mark.parametrize("path", [paths.topic_reassignments("orders"), paths.topic("orders"), paths.STRAYS])
async def test_a_cancel_that_cannot_be_written_is_an_error(bench: Bench, path: str) -> None:
    assert (await bench.begin_move((1, 2, 3), (1, 4, 5))).error is ErrorCode.NONE
    allow(bench, path, Access.READ)
    assert (await bench.move(TP, None)).error is not ErrorCode.NONE
    assert TP in bench.context.reassigning
    allow(bench, path)
    assert (await bench.move(TP, None)).error is ErrorCode.NONE
    await bench.fail_over()
    assert TP not in bench.context.reassigning


async def test_what_cannot_be_removed_is_logged_with_its_consequence(bench: Bench) -> None:
    await bench.start((2, 1))
    await write(
        bench,
        Create(paths.PREFERRED_REPLICA_ELECTION, formats.encode_partitions([TP])),
        Create(f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_1", formats.encode_log_dir_event(1)),
    )
    for path in ("/admin", paths.LOG_DIR_EVENT_NOTIFICATION):
        allow(bench, path, Access.READ)
    with capture_logs() as logs:
        await bench.handle(PreferredReplicaElection())
        await bench.handle(LogDirEventNotification())
    consequences = [log["consequence"] for log in logs if "consequence" in log]
    assert [text.partition(":")[0] for text in consequences] == [f"{paths.PREFERRED_REPLICA_ELECTION} stays"]
    assert any(log["event"].startswith("notifications stay") for log in logs)
    again = alarms.CLOSED_SECONDS, LogDirEventNotification()
    assert again in alarms.alarms(bench.context, LogDirEventNotification())
    allow(bench, paths.LOG_DIR_EVENT_NOTIFICATION)
    await bench.handle(LogDirEventNotification())
    assert again not in alarms.alarms(bench.context, LogDirEventNotification())
