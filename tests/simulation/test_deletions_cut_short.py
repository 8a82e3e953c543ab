"""Deletions that a controller began and left behind in the middle of a move (LinkedIn's Kafka, issues 596 and 597).

The states of the topic's partitions are gone, its znode still has adding and removing replicas, and the marker of the
deletion is there, with or without a request in `/admin/reassign_partitions`. Every next controller has to end the
deletion, and must not resume the move.
"""

from __future__ import annotations

from typing import Final

import pytest
import trio

from klamm.testing import SimulatedCluster, open_cluster
from klamm.testing.actions import (
    Crash,
    CreateTopic,
    CreateTopics,
    Damage,
    MarkForDeletion,
    PlaceTopic,
    Produce,
    Start,
    WriteRequests,
)
from simulator.administration import partition_named
from transport.messages import AllocateProducerIdsRequest
from transport.metadata import ReplicaAssignment
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.protocol import Delete

pytestmark = pytest.mark.usefixtures("autojump_clock")

TP: Final = partition_named("orders-0")
REPLICAS: Final = (1, 2, 3)
MOVING: Final = ReplicaAssignment((1, 2, 3, 4), adding_replicas=(4,), removing_replicas=(1,))
TARGET: Final = (4, 2, 3)
AGAIN: Final = (4, 3)
LATE: Final = {"all are there": (), "two return late": (1, 4), "all return late": (1, 2, 3, 4)}
RELEASES: Final = {"klamm": (), "kafka 3.9": ("3.9",), "kafka mixed": ("2.8", "3.3", "3.9")}


async def leave_behind(cluster: SimulatedCluster, late: tuple[int, ...], *, is_requested: bool) -> str:
    """Create two topics, stop everything late, and write what a deletion that was cut short leaves; return the id."""
    await CreateTopics((CreateTopic("orders", (REPLICAS,)), CreateTopic("others", ((2, 3),)))).on(cluster)
    await Produce({"orders-0": 5, "others-0": 5}).on(cluster)
    topic = cluster.durable.topic("orders")
    assert topic is not None
    assert topic.topic_id is not None
    Crash(late, noticed=True).on(cluster)
    Crash((101, 102), noticed=True).on(cluster)
    left = TopicZnode({0: MOVING}, topic.topic_id)
    # No invariant is checked over the topic from then on: what it has to become is asserted below.
    Damage({paths.topic("orders"): formats.encode_topic(left).decode()}).on(cluster)
    below = (paths.partition_state(TP), paths.partition(TP), paths.topic_partitions("orders"))
    cluster.world.ensemble.commit_by_hand([Delete(path) for path in below])
    MarkForDeletion("orders").on(cluster)
    if is_requested:
        WriteRequests({"orders-0": TARGET}).on(cluster)
    Start((101, 102)).on(cluster)
    return topic.topic_id


def logs(cluster: SimulatedCluster, topic_id: str) -> list[int]:
    """Return the brokers with a log of the topic of this id."""
    disks = {id_: broker.disk.logs.get(TP) for id_, broker in cluster.brokers.items()}
    return [id_ for id_, log in disks.items() if log is not None and log.topic_id == topic_id]


def traces(cluster: SimulatedCluster) -> list[str]:
    """Return the znodes that the deletion and the move have left."""
    tree = cluster.durable.tree
    single = (paths.topic("orders"), paths.delete_topic("orders"), paths.REASSIGN_PARTITIONS)
    strays = [f"{paths.STRAYS}/{name}" for name in tree.children(paths.STRAYS) or () if "orders" in name]
    return [path for path in (*single, paths.topic_reassignments("orders")) if tree.read(path) is not None] + strays


async def require_producer_ids(cluster: SimulatedCluster) -> None:
    """Ask the active controller for ids of producers, as broker 2."""
    if cluster.active_controller is not None and 2 in cluster.durable.brokers():
        request = AllocateProducerIdsRequest(2, cluster.durable.brokers()[2].epoch)
        assert (await cluster.ask(cluster.active_controller, request)).count > 0


def quarantined(cluster: SimulatedCluster) -> int:
    """Return how many subjects the active controller processes no more."""
    assert cluster.active_controller is not None
    service = cluster.controllers[cluster.active_controller].service
    assert service is not None
    return service.quarantine_size()


@pytest.mark.parametrize("releases", RELEASES.values(), ids=RELEASES)
@pytest.mark.parametrize("late", LATE.values(), ids=LATE)
@pytest.mark.parametrize("is_requested", [False, True], ids=["no request", "a request"])
async def test_a_deletion_that_was_cut_short_in_a_move_ends(
    releases: tuple[str, ...], late: tuple[int, ...], *, is_requested: bool
) -> None:
    async with open_cluster(brokers=4, controllers=2, releases=releases) as c:
        old = await leave_behind(c, late, is_requested=is_requested)
        await c.until(lambda: c.durable.controller_epoch() == 2, what="the next controller")
        if not set(late) & {2, 3}:
            # Other topics are served at once, and producers get their ids.
            assert await c.produce("others-0", [b"meanwhile"]) == 5
            await require_producer_ids(c)
        await trio.sleep(15)
        # It names a topic that is being deleted: nothing is moved, whoever is away.
        assert c.durable.tree.read(paths.REASSIGN_PARTITIONS) is None
        Start(late).on(c)
        await c.until(lambda: not traces(c), what="the end of the deletion")
        await c.until(lambda: not logs(c, old), what="the deletion of the old logs")
        await c.settle()
        # The first controller was the one that left it behind. A fault would have cost the second one its office.
        assert c.durable.controller_epoch() == 2
        assert quarantined(c) == 0

        # The next topic of that name is another one, which nothing of the old one moves or deletes.
        await CreateTopics((CreateTopic("orders", (AGAIN,)),)).on(c)
        await Produce({"orders-0": 3}).on(c)
        Crash("controller", noticed=True).on(c)
        await c.until(lambda: c.durable.controller_epoch() == 3, what="the next controller")
        await c.settle()
        assert c.durable.assignment(TP) == ReplicaAssignment(AGAIN)
        topic = c.durable.topic("orders")
        assert topic is not None
        assert topic.topic_id not in (None, old)
        assert logs(c, str(topic.topic_id)) == sorted(AGAIN)
        assert len(await c.consume("orders-0", up_to=3)) == 3
        assert len(await c.consume("others-0", up_to=5)) in (5, 6)


@pytest.mark.parametrize("late", LATE.values(), ids=LATE)
async def test_the_requests_of_a_topic_that_kafka_deleted_and_a_broker_created_again_end(late: tuple[int, ...]) -> None:
    """Kafka's controller deletes a topic before its marker; a request is left where its move had not ended."""
    async with open_cluster(brokers=4, controllers=2, releases=("3.9", "2.8")) as c:
        await CreateTopics((CreateTopic("orders", (REPLICAS,)),)).on(c)
        await c.delete_topic("orders")
        await c.until(lambda: c.durable.topic("orders") is None, what="the end of the deletion")
        await c.settle()
        Crash((101, 102), noticed=True).on(c)
        MarkForDeletion("orders").on(c)
        PlaceTopic((CreateTopic("orders", (AGAIN,)),)).on(c)
        WriteRequests({"orders-0": TARGET}).on(c)
        Crash(late, noticed=True).on(c)
        Start((101, 102)).on(c)
        await c.until(lambda: c.durable.controller_epoch() == 2, what="the next controller")
        await trio.sleep(15)
        # The marker is older than the topic, which stays.
        assert c.durable.tree.read(paths.delete_topic("orders")) is None
        assert c.durable.topic("orders") is not None
        Start(late).on(c)
        await c.until(lambda: c.durable.tree.read(paths.REASSIGN_PARTITIONS) is None, what="the end of the request")
        await c.settle()
        assert c.durable.controller_epoch() == 2
        assignment = c.durable.assignment(TP)
        assert assignment is not None
        assert not assignment.is_being_reassigned
        topic = c.durable.topic("orders")
        assert topic is not None
        assert logs(c, str(topic.topic_id)) == sorted(assignment.replicas)
