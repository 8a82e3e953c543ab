"""Znodes that tools edit or close: checked as long as a controller can write back what it knew."""

from __future__ import annotations

import pytest
import trio

from klamm.testing import open_cluster
from klamm.testing.actions import (
    Allow,
    Crash,
    CreateTopic,
    EditState,
    EditTopic,
    HoldQueue,
    KeepOutOfIsr,
    RewriteTopic,
    StateEdit,
    TopicEdit,
)
from simulator import liveness
from simulator.actions.scene import CannotBeDone, Strike
from simulator.administration import partition_named
from simulator.cluster import SimulatedCluster
from simulator.safety.invariants import DURABLE, Violation
from tests.simulation.planted.bugs import planted
from transport.store import paths
from transport.store.tree import Access

pytestmark = pytest.mark.usefixtures("autojump_clock")


def znode(cluster: SimulatedCluster) -> bytes:
    found = cluster.durable.tree.read(paths.topic("orders"))
    assert found is not None
    return found.data


async def create(cluster: SimulatedCluster) -> None:
    await CreateTopic("orders", ((1, 2), (2, 3))).on(cluster)
    await cluster.until(lambda: cluster.partition("orders-1") is not None)


@pytest.mark.parametrize("edit", [edit for edit in TopicEdit if edit is not TopicEdit.ONE_MORE])
async def test_what_a_controller_knew_is_written_back_and_checked(edit: TopicEdit) -> None:
    async with open_cluster(controllers=2) as cluster:
        await create(cluster)
        before = znode(cluster)
        EditTopic("orders", edit).on(cluster)
        assert znode(cluster) != before or edit is TopicEdit.WITHOUT_MOVES
        await cluster.until(lambda: znode(cluster) == before)
        Crash("controller", noticed=True).on(cluster)
        await cluster.settle()
        assert not cluster.world.safety.exempt.has_topic("orders")


async def test_a_partition_added_by_hand_is_started() -> None:
    async with open_cluster(controllers=2) as cluster:
        await create(cluster)
        EditTopic("orders", TopicEdit.ONE_MORE).on(cluster)
        await cluster.until(lambda: cluster.partition("orders-2") is not None)


async def test_what_nobody_wrote_back_is_not_checked_under_the_next_controller() -> None:
    async with open_cluster(controllers=2) as cluster:
        await create(cluster)
        HoldQueue("controller").on(cluster)
        EditTopic("orders", TopicEdit.OTHER_REPLICAS).on(cluster)
        assert not cluster.world.safety.exempt.has_topic("orders")
        Crash("controller", noticed=True).on(cluster)
        await cluster.until(lambda: cluster.durable.controller_epoch() == 2)
        assert cluster.world.safety.exempt.has_topic("orders")


async def test_no_topic_is_edited_that_no_controller_knows() -> None:
    async with open_cluster() as cluster:
        with pytest.raises(CannotBeDone, match="no controller knows topic orders"):
            EditTopic("orders", TopicEdit.WITHOUT_ID).on(cluster)


async def test_a_state_written_by_hand_exempts_its_topic() -> None:
    async with open_cluster() as cluster:
        await create(cluster)
        EditState("orders-0", StateEdit.SMALLER_ISR).on(cluster)
        state = cluster.partition("orders-0")
        assert state is not None
        assert state.isr == (1,)
        assert cluster.world.safety.exempt.has_topic("orders")
        EditState("orders-0", StateEdit.DELETED).on(cluster)
        assert cluster.partition("orders-0") is None


async def test_a_state_written_again_as_it_was_is_read_when_its_isr_changes() -> None:
    async with open_cluster() as cluster:
        await create(cluster)
        KeepOutOfIsr({"orders-0": (2,)}).on(cluster)
        await cluster.until(lambda: isr(cluster, "orders-0") == (1,))
        outside = ["orders-0: live replicas (2,) are not in the ISR (1,)"]
        await cluster.until(lambda: liveness.faults(cluster) == outside)
        EditState("orders-0", StateEdit.TOUCHED).on(cluster)
        assert liveness.faults(cluster) == outside
        KeepOutOfIsr({"orders-0": ()}).on(cluster)
        await cluster.settle()
        assert isr(cluster, "orders-0") == (1, 2)
        assert not cluster.world.safety.exempt.has_topic("orders")


@pytest.mark.parametrize("servers", [1, 3])
async def test_a_closed_state_is_not_written_before_the_faults_end(servers: int) -> None:
    async with open_cluster(servers=servers) as cluster:
        await create(cluster)
        path = paths.partition_state(partition_named("orders-0"))
        Allow(path, Access.READ).on(cluster)
        exempt = cluster.world.safety.exempt
        assert (exempt.has_topic("orders"), exempt.is_unreadable("orders")) == (True, False)
        Crash(1, noticed=True).on(cluster)
        await trio.sleep(10)
        assert leader(cluster, "orders-0") == 1
        await cluster.settle()
        Crash(1, noticed=True).on(cluster)
        await cluster.until(lambda: leader(cluster, "orders-0") == 2)


async def test_what_nobody_may_read_is_not_checked_at_all() -> None:
    async with open_cluster() as cluster:
        await create(cluster)
        Allow(paths.topic("orders"), Access.NONE).on(cluster)
        assert cluster.world.safety.exempt.is_unreadable("orders")


async def test_brokers_are_told_nothing_that_a_closed_state_does_not_say() -> None:
    with planted("what_an_acl_forbids_counts_as_written"), pytest.raises(Violation, match=DURABLE):
        await close_a_state_and_crash()


async def close_a_state_and_crash() -> None:
    async with open_cluster() as cluster:
        await create(cluster)
        Allow(paths.partition_state(partition_named("orders-0")), Access.READ).on(cluster)
        Crash(1, noticed=True).on(cluster)
        await trio.sleep(10)


async def test_no_znode_is_closed_that_does_not_exist() -> None:
    async with open_cluster() as cluster:
        with pytest.raises(CannotBeDone, match="/nowhere does not exist now"):
            Allow("/nowhere", Access.NONE).on(cluster)


def isr(cluster: SimulatedCluster, name: str) -> tuple[int, ...]:
    state = cluster.partition(name)
    assert state is not None
    return state.isr


def leader(cluster: SimulatedCluster, name: str) -> int:
    state = cluster.partition(name)
    assert state is not None
    return state.leader


@pytest.mark.parametrize("strike", [EditTopic("orders", TopicEdit.ONE_MORE), RewriteTopic((CreateTopic("orders"),))])
async def test_nobody_writes_a_closed_znode_by_hand(strike: Strike) -> None:
    async with open_cluster() as cluster:
        await create(cluster)
        Allow(paths.topic("orders"), Access.READ).on(cluster)
        with pytest.raises(CannotBeDone, match="its ACL forbids it"):
            strike.on(cluster)
