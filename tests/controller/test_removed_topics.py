"""A topic whose znodes were removed by hand: its logs are deleted, and do not conflict with a namesake."""

from __future__ import annotations

import pytest
import trio

from controller.channels.backlog import BrokerBacklog
from controller.events import (
    BrokerChange,
    ControllerEvent,
    PartitionModifications,
    ReplicasNotDeleted,
    StrayDeletion,
    TopicChange,
)
from controller.model.rounds import TellMetadata
from tests.controller.conftest import ENDPOINT, TP, Bench
from tests.controller.deletions import SECOND, create, deleted, replica, strays
from tests.controller.meddler import Meddler, set_assignments
from tests.kit.told import Order, Stop, add_singly
from transport.errors import ErrorCode
from transport.messages import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from transport.metadata import EPOCH_DURING_DELETE, LEADER_DURING_DELETE, ReplicaAssignment
from transport.store import paths
from transport.store.protocol import Create

ID = "id-of-orders"


def told_to_delete(bench: Bench) -> list[tuple[int, str, int]]:
    """List who was told to delete what: broker, topic id, partition."""
    stops = [p for p in bench.seen.published if isinstance(p, Stop) and p.partition.delete]
    return sorted((b, stop.partition.topic_id, stop.partition.partition) for stop in stops for b in stop.brokers)


@pytest.mark.requirement("D8")
@pytest.mark.parametrize("event", [TopicChange(), PartitionModifications("orders")], ids=lambda event: event.name)
async def test_its_replicas_are_strays_until_they_are_deleted(bench: Bench, event: ControllerEvent) -> None:
    await bench.start((1, 2), (2, 3))
    await bench.move(SECOND, (4, 3))
    await bench.kill(3)
    bench.seen.clear()
    await bench.delete_topic("orders", 2)
    await bench.handle(event)

    everywhere = [replica(1), replica(2), replica(2, 1), replica(3, 1), replica(4, 1)]
    assert sorted(filter(None, await strays(bench))) == sorted(everywhere)
    assert told_to_delete(bench) == [(s.broker_id, ID, s.partition) for s in everywhere]
    stops = [p.partition.leader_epoch for p in bench.seen.published if isinstance(p, Stop)]
    assert set(stops) == {EPOCH_DURING_DELETE}, "whatever epoch the replica has"
    told = [(state.partition, state.leader) for tell in bench.seen.metadata() for state in tell.partitions]
    assert told == [(0, LEADER_DURING_DELETE), (1, LEADER_DURING_DELETE)]
    assert bench.context.topics == {}

    await deleted(bench, *(stray for stray in everywhere if stray.broker_id != 3))
    bench.seen.clear()
    await bench.fail_over()
    assert told_to_delete(bench) == []
    await bench.revive(3)
    assert told_to_delete(bench) == [(3, ID, 1)]
    await deleted(bench, replica(3, 1))
    assert await strays(bench) == []


@pytest.mark.requirement("D8")
async def test_nobody_is_told_to_delete_what_is_not_written_down(bench: Bench) -> None:
    await bench.start((1, 2), (2, 3))
    await bench.delete_topic("orders", 2)
    await bench.crash(bench.handle(TopicChange()), after="gone")
    assert told_to_delete(bench) == []
    assert len(await strays(bench)) == 4
    await bench.fail_over()
    assert told_to_delete(bench) == [(1, ID, 0), (2, ID, 0), (2, ID, 1), (3, ID, 1)]


@pytest.mark.requirement("D8")
@pytest.mark.parametrize("is_seen_between", [True, False])
async def test_a_broker_deletes_the_log_before_it_hears_of_a_namesake(bench: Bench, is_seen_between: bool) -> None:
    await bench.start((1, 2))
    await bench.delete_topic("orders", 1)
    if is_seen_between:
        await bench.handle(TopicChange())
    await create(bench, "another-id", 2, 3)
    await bench.handle(TopicChange() if is_seen_between else PartitionModifications("orders"))
    assert sorted(filter(None, await strays(bench))) == [replica(1), replica(2)]

    backlog = BrokerBacklog(ENDPOINT, 1, 1)
    for publication in bench.seen.published:
        if publication.brokers is None or 2 in publication.brokers:
            add_singly(backlog, publication)
    requests = [request for _ in range(len(backlog)) if (request := backlog.take()) is not None]
    assert [type(request) for request in requests] == [StopReplicaRequest, LeaderAndIsrRequest, UpdateMetadataRequest]
    stop, lead, metadata = requests
    assert isinstance(stop, StopReplicaRequest)
    assert [(item.topic_id, item.delete) for item in stop.partitions] == [(ID, True)]
    assert isinstance(lead, LeaderAndIsrRequest)
    assert [item.state.topic_id for item in lead.partitions] == ["another-id"]
    assert isinstance(metadata, UpdateMetadataRequest)
    told = [(state.topic_id, state.leader) for state in metadata.partitions]
    assert told == [(ID, LEADER_DURING_DELETE), ("another-id", 2)]


@pytest.mark.requirement("D8")
async def test_a_broker_that_could_not_delete_the_log_is_told_of_the_namesake_again_with_the_deletion(
    bench: Bench,
) -> None:
    await bench.start((1, 2))
    await bench.delete_topic("orders", 1)
    await create(bench, "another-id", 2, 3)
    await bench.handle(PartitionModifications("orders"))
    await bench.handle(ReplicasNotDeleted((replica(1), replica(2))))
    bench.seen.clear()
    await bench.handle(StrayDeletion())
    assert told_to_delete(bench) == [(1, ID, 0), (2, ID, 0)]
    [again] = bench.seen.leader_and_isr()
    assert (again.brokers, again.state.topic_id, again.is_new) == ((2,), "another-id", False)
    bench.seen.clear()
    await bench.handle(StrayDeletion())
    assert bench.seen.leader_and_isr() == [], "the broker has not failed since"


@pytest.mark.parametrize("is_led", [True, False], ids=["seen by the controller", "seen by the next one"])
async def test_a_topic_that_comes_back_under_its_id_loses_its_strays_and_not_its_logs(
    bench: Bench, is_led: bool
) -> None:
    await bench.start((1, 2))
    await bench.alter_isr(TP, 1)
    await bench.delete_topic("orders", 1)
    await bench.handle(TopicChange())
    await create(bench, ID, 2, 3)
    deletion = bench.seen.metadata()[-1]
    bench.seen.clear()
    await (bench.handle(TopicChange()) if is_led else bench.fail_over())
    assert await strays(bench) == [replica(1)]
    assert (await bench.read_state(TP)).isr == (2, 3)
    assert told_to_delete(bench) == ([] if is_led else [(1, ID, 0)])
    backlog = BrokerBacklog(ENDPOINT, 1, 1)
    for publication in (deletion, *bench.seen.metadata()):
        add_singly(backlog, publication)
    metadata = backlog.take()
    assert isinstance(metadata, UpdateMetadataRequest)
    assert [state.leader for state in metadata.partitions] == [2]
    bench.seen.clear()
    await bench.fail_over()
    assert told_to_delete(bench) == [(1, ID, 0)]


async def test_a_stray_that_is_there_already_is_not_waited_for(bench: Bench) -> None:
    await bench.start((1, 2))
    await bench.delete_topic("orders", 1)
    theirs = Create(paths.stray(replica(2)))
    bench.runner.store = Meddler(bench.store, paths.stray(replica(1)), [theirs])
    with trio.fail_after(20):
        await bench.handle(TopicChange())
    assert sorted(filter(None, await strays(bench))) == [replica(1), replica(2)]
    assert told_to_delete(bench) == [(1, ID, 0), (2, ID, 0)]


async def test_a_namesake_is_not_moved_in_its_place(bench: Bench) -> None:
    await bench.start((1, 2))
    topic = paths.topic("orders")
    namesake = set_assignments("orders", await bench.read(topic), {}, topic_id="another-id")
    bench.runner.store = Meddler(bench.store, topic, [namesake])
    assert (await bench.move(TP, (4, 5))).error is not ErrorCode.NONE
    assert await bench.read_assignment(TP) == ReplicaAssignment((1, 2))
    assert bench.context.topic_id("orders") == "another-id"


async def test_many_partitions_go_in_commits_that_a_store_accepts(bench: Bench) -> None:
    await bench.start(*[(1, 2)] * 600)
    await bench.delete_topic("orders", 600)
    await bench.handle(TopicChange())
    assert bench.seen.rounds == [*["gone"] * 3, *["(gone)"] * 2]
    assert len(await strays(bench)) == len(told_to_delete(bench)) == 1200


@pytest.mark.requirement("D8")
@pytest.mark.parametrize("fails_over", [False, True])
async def test_a_broker_that_returns_deletes_the_log_before_it_hears_of_a_namesake(
    bench: Bench, *, fails_over: bool
) -> None:
    await bench.start((1, 2))
    await bench.kill(2)
    await bench.delete_topic("orders", 1)
    await bench.handle(TopicChange())
    await create(bench, "another-id", 1, 2)
    await bench.handle(TopicChange())
    bench.seen.clear()
    await bench.register(2)
    await (bench.fail_over() if fails_over else bench.handle(BrokerChange()))
    told = [p for p in bench.seen.published if not isinstance(p, TellMetadata) and 2 in p.brokers]
    first = told[0]
    assert isinstance(first, Stop)
    assert (first.partition.topic_id, first.partition.delete) == (ID, True)
    assert [p.state.topic_id for p in told if isinstance(p, Order)][:1] == ["another-id"]
