"""An operation that a foreign ACL forbids fails for its own subject: it is logged, and nothing else is affected."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from controller.events import IsrChangeNotification, TopicChange, TopicDeletion, TopicsDeleted
from controller.handlers import deletion, reassignments
from controller.handlers.topics import topic_change
from controller.node import alarms
from tests.controller.conftest import TP, Bench
from tests.controller.deletions import obeyed, replica
from tests.kit.told import Stop
from transport.errors import ErrorCode
from transport.messages import (
    AlterableConfig,
    AlterConfigsResource,
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    NewPartitions,
    NewTopic,
)
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, Delete
from transport.store.tree import Access

ORIGIN, TARGET = (1, 2, 3), (1, 4, 5)
OTHER = TopicPartition("other", 0)
ACCESS = pytest.mark.parametrize("access", [Access.READ, Access.NONE], ids=lambda access: access.name)


def allow(bench: Bench, path: str, access: Access) -> None:
    bench.seen.zookeeper.tree.allow(path, access)


async def test_an_isr_that_cannot_be_written_keeps_the_data_of_its_members(bench: Bench) -> None:
    await bench.write_topic(OTHER.topic, ORIGIN)
    await bench.start(ORIGIN)
    for tp in (TP, OTHER):
        assert (await bench.move(tp, TARGET)).error is ErrorCode.NONE
        await bench.write_state(tp, replace(bench.context.leadership[tp], isr=(1, 2, 3, 4, 5)))
    notice = Create(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_1", formats.encode_partitions([TP, OTHER]))
    await bench.store.multi([notice])
    allow(bench, paths.partition_state(TP), Access.READ)
    with capture_logs() as logs:
        await bench.handle(IsrChangeNotification())
    assert await bench.read_assignment(OTHER) == ReplicaAssignment(TARGET)
    stops = [p.partition for p in bench.seen.published if isinstance(p, Stop)]
    assert {stop.topic for stop in stops if stop.delete} == {OTHER.topic}
    assert any(f"{paths.partition_state(TP)} may not be touched" in str(log.get("fault")) for log in logs)
    # Given back, it continues where it was.
    allow(bench, paths.partition_state(TP), Access.ALL)
    await bench.store.multi([notice])
    await bench.handle(IsrChangeNotification())
    assert await bench.read_assignment(TP) == ReplicaAssignment(TARGET)


async def test_a_move_whose_state_cannot_be_written_holds_up_no_other_of_its_topic(bench: Bench) -> None:
    await bench.start(ORIGIN, ORIGIN, ORIGIN)
    closed, *others = bench.context.partitions()
    await bench.run(reassignments.begin(bench.context, dict.fromkeys(bench.context.partitions(), TARGET)))
    for tp in (closed, *others):
        await bench.write_state(tp, replace(bench.context.leadership[tp], isr=(1, 2, 3, 4, 5)))
    await bench.store.multi(
        [Create(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_1", formats.encode_partitions([closed, *others]))]
    )
    allow(bench, paths.partition_state(closed), Access.READ)
    await bench.handle(IsrChangeNotification())
    assert list(bench.context.reassigning) == [closed]
    assert bench.context.assignment(closed) == ReplicaAssignment((1, 4, 5, 2, 3), (4, 5), (2, 3))
    for tp in others:
        assert await bench.read_assignment(tp) == ReplicaAssignment(TARGET)
    assert {stray.tp for stray in bench.context.strays} == set(others)


@ACCESS
async def test_partitions_that_cannot_be_created_wait_until_they_can(bench: Bench, access: Access) -> None:
    await bench.start(ORIGIN)
    await bench.write_topic(OTHER.topic, ORIGIN)
    allow(bench, paths.topic(OTHER.topic), access)
    await bench.handle(TopicChange())
    assert OTHER not in bench.context.leadership
    later = alarms.alarms(bench.context, TopicChange())
    assert later == ([(alarms.CLOSED_SECONDS, TopicChange())] if access is Access.NONE else [])
    allow(bench, paths.topic(OTHER.topic), Access.ALL)
    await bench.handle(TopicChange())
    await bench.kill(6)
    assert bench.context.leadership[OTHER].leader == 1
    assert alarms.alarms(bench.context, TopicChange()) == []


async def test_partitions_are_created_below_a_parent_that_exists_where_none_could_be_created(bench: Bench) -> None:
    await bench.start(ORIGIN)
    await bench.write_topic(OTHER.topic, ORIGIN)
    await bench.store.multi([Create(paths.topic_partitions(OTHER.topic))])
    allow(bench, paths.topic(OTHER.topic), Access.READ)
    await bench.handle(TopicChange())
    assert bench.context.leadership[OTHER].leader == 1


@ACCESS
async def test_a_move_is_refused_where_others_have_the_znodes_of_its_topics_moves(bench: Bench, access: Access) -> None:
    await bench.start(ORIGIN)
    parent = paths.topic_reassignments(TP.topic)
    await bench.store.multi([Create(parent), Create(f"{parent}/of-others")])
    allow(bench, parent, access)
    assert (await bench.move(TP, TARGET)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await bench.read_assignment(TP) == ReplicaAssignment(ORIGIN)
    allow(bench, parent, Access.ALL)
    await bench.fail_over()
    assert (await bench.move(TP, TARGET)).error is ErrorCode.NONE


@ACCESS
async def test_a_topic_that_cannot_be_given_an_id_is_looked_at_again(bench: Bench, access: Access) -> None:
    await bench.start(ORIGIN)
    znode = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment(ORIGIN)}, None))
    await bench.store.multi([Create(paths.topic(OTHER.topic), znode)])
    allow(bench, paths.topic(OTHER.topic), access)
    await bench.handle(TopicChange())
    assert OTHER.topic not in bench.context.topics
    assert alarms.alarms(bench.context, TopicChange()) == [(alarms.CLOSED_SECONDS, TopicChange())]
    allow(bench, paths.topic(OTHER.topic), Access.ALL)
    await bench.run(topic_change(bench.context, iter(["id-of-other"])))
    assert bench.context.leadership[OTHER].leader == 1
    assert alarms.alarms(bench.context, TopicChange()) == []


@ACCESS
async def test_nobody_looks_for_a_closed_topic_that_is_gone(bench: Bench, access: Access) -> None:
    await bench.start(ORIGIN)
    await bench.write_topic(OTHER.topic, ORIGIN)
    allow(bench, paths.topic(OTHER.topic), access)
    await bench.handle(TopicChange())
    await bench.store.multi([Delete(paths.topic(OTHER.topic))])
    await bench.handle(TopicChange())
    assert alarms.alarms(bench.context, TopicChange()) == []


@ACCESS
@pytest.mark.parametrize("path", [paths.topic_partitions(TP.topic), paths.partition(TP), paths.topic(TP.topic)])
async def test_a_topic_that_cannot_be_removed_is_tried_again(bench: Bench, access: Access, path: str) -> None:
    await bench.start(ORIGIN)
    allow(bench, path, access)
    marked = await bench.ask(DeleteTopicsRequest((TP.topic,)), DeleteTopicsResponse)
    assert marked.topics[0].error is ErrorCode.NONE
    await bench.handle(TopicDeletion())
    answers = [obeyed(replica(broker_id)) for broker_id in ORIGIN]
    with capture_logs() as logs:
        for answer in answers:
            await bench.handle(answer)
    assert TP.topic in bench.context.deletions
    assert any("cannot be removed yet" in log["event"] for log in logs)
    again = (deletion.RETRY_SECONDS, TopicDeletion())
    assert again in alarms.alarms(bench.context, TopicsDeleted((TP.topic,)))
    allow(bench, path, Access.ALL)
    await bench.handle(TopicDeletion())
    assert await bench.read(paths.topic(TP.topic)) is None
    assert alarms.alarms(bench.context, TopicsDeleted((TP.topic,))) == []


@ACCESS
async def test_who_asks_for_what_an_acl_forbids_is_told(bench: Bench, access: Access) -> None:
    await bench.start(ORIGIN)
    await bench.store.multi([Create(paths.topic_config(TP.topic))])
    for path in (paths.TOPICS, paths.DELETE_TOPICS, paths.topic(TP.topic)):
        allow(bench, path, access)
    for path in (paths.topic_config(TP.topic), paths.partition_state(TP)):
        allow(bench, path, Access.READ)

    created = await bench.ask(CreateTopicsRequest((NewTopic("new", 1, 1, ((1,),)),)), CreateTopicsResponse)
    grown = await bench.ask(CreatePartitionsRequest((NewPartitions(TP.topic, 2),)), CreatePartitionsResponse)
    deleted = await bench.ask(DeleteTopicsRequest((TP.topic,)), DeleteTopicsResponse)
    altered = AlterableConfig("min.insync.replicas", ConfigOperation.SET, "2")
    resource = AlterConfigsResource(ConfigResource(ConfigResourceType.TOPIC, TP.topic), (altered,))
    configured = await bench.ask(IncrementalAlterConfigsRequest((resource,)), IncrementalAlterConfigsResponse)
    results = [(item.error, item.message) for item in (*created.topics, *grown.topics, *deleted.topics)]
    results += [(item.error, item.message) for item in configured.resources]
    assert [error for error, _ in results] == [ErrorCode.OPERATION_NOT_ATTEMPTED] * 4
    assert all("see the controller's log" in message for _, message in results)

    now = bench.context.leadership[TP]
    item = AlterPartitionItem(TP.topic, "id-of-orders", 0, now.leader_epoch, (1, 2), now.partition_epoch)
    request = AlterPartitionRequest(1, bench.context.brokers[1].epoch, (item,))
    [asked] = (await bench.ask(request, AlterPartitionResponse)).partitions
    assert asked.error is ErrorCode.OPERATION_NOT_ATTEMPTED

    moved = await bench.move(TP, TARGET)
    assert moved.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "cannot be read or written" in moved.message
    assert bench.context.assignment(TP) == ReplicaAssignment(ORIGIN)
