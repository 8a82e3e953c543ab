"""Topics that operators delete and create again by hand: checked as long as the controller lives that knew both."""

from __future__ import annotations

import pytest
import trio

from klamm.testing import open_cluster, run_scenario
from klamm.testing.actions import (
    Allow,
    CannotBeDone,
    Crash,
    CreateTopic,
    EditTopic,
    FailDisk,
    HoldQueue,
    MarkForDeletion,
    Produce,
    RecreateTopic,
    Start,
    Suspend,
    TopicEdit,
    Wake,
)
from simulator.administration import partition_named
from simulator.cluster import SimulatedCluster
from simulator.safety.invariants import Violation
from tests.simulation.planted.bugs import planted
from transport.metadata import ReplicaAssignment
from transport.store import paths
from transport.store.tree import Access

pytestmark = pytest.mark.usefixtures("autojump_clock")

AGAIN = RecreateTopic((CreateTopic("orders", ((2, 3), (3, 1))),))


async def create(cluster: SimulatedCluster) -> None:
    await CreateTopic("orders", ((1, 2), (2, 3))).on(cluster)
    await cluster.until(lambda: cluster.partition("orders-1") is not None)
    await Produce({"orders-0": 3}).on(cluster)


def topic_id(cluster: SimulatedCluster) -> str | None:
    topic = cluster.durable.topic("orders")
    return None if topic is None else topic.topic_id


def leader(cluster: SimulatedCluster) -> int | None:
    state = cluster.partition("orders-0")
    return None if state is None else state.leader


async def recreate_while_a_broker_is_away(cluster: SimulatedCluster) -> None:
    await create(cluster)
    Crash(2, noticed=True).on(cluster)
    await cluster.until(lambda: 2 not in cluster.durable.brokers())
    AGAIN.on(cluster)
    Start(2).on(cluster)
    await cluster.settle()


async def test_brokers_have_the_data_of_the_new_topic_only() -> None:
    async with open_cluster() as cluster:
        await create(cluster)
        before = topic_id(cluster)
        AGAIN.on(cluster)
        await cluster.settle()
        assert topic_id(cluster) not in (None, before)
        logs = [log for broker in cluster.brokers.values() for log in broker.disk.logs.values()]
        assert [(log.topic_id, log.records) for log in logs] == [(topic_id(cluster), [])] * 4
        assert not cluster.world.safety.exempt.has_topic("orders")


async def test_nobody_expects_the_controller_to_know_of_a_failed_directory_from_the_former_topic() -> None:
    async with open_cluster() as cluster:
        await create(cluster)
        FailDisk(1, directory=0, noticed=True).on(cluster)
        await cluster.until(lambda: leader(cluster) == 2, what="the other leader")
        # Broker 1 is elected again, and then says that it has no directory for the new topic either.
        RecreateTopic((CreateTopic("orders", ((1, 2), (2, 3))),)).on(cluster)
        await cluster.until(lambda: leader(cluster) == 2, what="the other leader of the new topic")
        await cluster.settle()


async def test_a_broker_that_was_away_deletes_the_old_data_before_it_follows() -> None:
    async with open_cluster() as cluster:
        await recreate_while_a_broker_is_away(cluster)
        assert cluster.brokers[2].disk.logs[partition_named("orders-0")].topic_id == topic_id(cluster)


async def test_a_topic_may_be_edited_before_the_controller_knows_that_it_is_another() -> None:
    async with open_cluster() as cluster:
        await create(cluster)
        Suspend("controller").on(cluster)
        RecreateTopic((CreateTopic("orders", ((1,), (3, 1))),)).on(cluster)
        EditTopic("orders", TopicEdit.OTHER_REPLICAS).on(cluster)
        edited = cluster.durable.assignment(partition_named("orders-0"))
        Wake("controller").on(cluster)
        await cluster.settle()
        assert cluster.durable.assignment(partition_named("orders-0")) == edited != ReplicaAssignment((1,))


async def test_its_id_is_not_dropped_before_the_controller_knows_that_it_is_another() -> None:
    async with open_cluster() as cluster:
        await create(cluster)
        Suspend("controller").on(cluster)
        AGAIN.on(cluster)
        with pytest.raises(CannotBeDone, match="was created again, and no controller knows that yet"):
            EditTopic("orders", TopicEdit.WITHOUT_ID).on(cluster)


async def test_a_controller_that_orders_the_new_replica_first_is_found_out() -> None:
    # An order that is repeated finds the earlier log deleted by then.
    with (
        planted("deletions_are_sent_after_leaders"),
        planted("failed_orders_are_not_repeated"),
        pytest.raises(Violation, match="are not in the ISR"),
    ):
        async with open_cluster() as cluster:
            await recreate_while_a_broker_is_away(cluster)


async def test_a_topic_is_not_checked_if_no_controller_knew_both() -> None:
    async with open_cluster(controllers=2) as cluster:
        await create(cluster)
        AGAIN.on(cluster)
        Crash("controller", noticed=True).on(cluster)
        await cluster.until(lambda: cluster.durable.controller_epoch() == 2)
        assert cluster.world.safety.exempt.has_topic("orders")


async def test_no_topic_is_created_again_while_a_controller_has_something_to_do() -> None:
    async with open_cluster() as cluster:
        await create(cluster)
        HoldQueue("controller").on(cluster)
        Crash(3, noticed=True).on(cluster)
        await trio.sleep(1)
        with pytest.raises(CannotBeDone, match="no controller at rest knows topic orders now"):
            AGAIN.on(cluster)


async def test_no_topic_is_created_again_that_is_to_be_deleted() -> None:
    async with open_cluster() as cluster:
        await create(cluster)
        MarkForDeletion("orders").on(cluster)
        with pytest.raises(CannotBeDone, match="no controller at rest knows topic orders now"):
            AGAIN.on(cluster)


@pytest.mark.parametrize(
    ("access", "why"), [(Access.READ, "its ACL forbids it"), (Access.NONE, "the node has children")]
)
async def test_a_closed_topic_is_left_as_it_is(access: Access, why: str) -> None:
    async with open_cluster() as cluster:
        await create(cluster)
        before = topic_id(cluster)
        Allow(paths.topic_partitions("orders"), access).on(cluster)
        with pytest.raises(CannotBeDone, match=why):
            AGAIN.on(cluster)
        assert (topic_id(cluster), cluster.partition("orders-0") is None) == (before, False)


ACKNOWLEDGED_BY_THE_FORMER_LEADER = """
seed: 53153
in_order: false
cluster: {brokers: 2, controllers: 1}
topics: {t0: [[1]]}
load: {per_second: 1, partitions: [t0-0]}
lasts: 2
events:
  - at: 0
    reassign: {t0-0: [2]}
  - at: 1
    suspend: 2
  - at: 1
    recreate_topic: {t0: [[1]]}
"""


def test_the_leader_of_the_former_topic_may_acknowledge_a_record() -> None:
    assert run_scenario(ACKNOWLEDGED_BY_THE_FORMER_LEADER) == []
