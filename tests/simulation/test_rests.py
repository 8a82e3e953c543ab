"""After the faults, brokers can be dead for a while: the others are then compared with what they should know."""

from __future__ import annotations

import pytest
import trio

from klamm.testing import open_cluster
from klamm.testing.actions import RestWithout
from simulator.actions.scene import CannotBeDone
from simulator.cluster import SimulatedCluster
from simulator.process import ProcessState
from simulator.safety.invariants import Violation
from tests.simulation.planted.bugs import planted
from transport.store import paths

pytestmark = pytest.mark.usefixtures("autojump_clock")


async def rest(cluster: SimulatedCluster, *brokers: int) -> list[tuple[int, ...]]:
    """Settle a cluster, of which these brokers rest; return the live brokers, as they change."""
    lists = [tuple(cluster.durable.brokers())]

    def look(*_: object) -> bool:
        live = tuple(cluster.durable.brokers())
        if live != lists[-1]:
            lists.append(live)
        return False

    await cluster.create_topic("orders", [(1, 2, 3), (2, 3, 1)])
    cluster.steps.watch(look)
    RestWithout(brokers).on(cluster)
    await cluster.settle()
    return lists


async def test_brokers_die_after_the_faults_and_come_back() -> None:
    async with open_cluster(brokers=3) as cluster:
        assert await rest(cluster, 2) == [(1, 2, 3), (1, 3), (1, 2, 3)]
        assert {broker.state for broker in cluster.brokers.values()} == {ProcessState.RUNNING}
        assert (cluster.resting, cluster.absent) == ({}, {})


async def test_the_others_have_to_know_which_replicas_are_offline() -> None:
    with planted("a_dead_follower_is_not_listed_as_offline"), pytest.raises(Violation, match=r"\(2,\) offline"):
        async with open_cluster(brokers=3) as cluster:
            await rest(cluster, 2)


async def test_a_move_may_wait_for_the_only_broker_that_can_lead() -> None:
    async with open_cluster(brokers=3) as cluster, trio.open_nursery() as nursery:
        await cluster.create_topic("orders", [(1,)])
        RestWithout(1).on(cluster)
        nursery.start_soon(cluster.settle)
        await cluster.until(lambda: 1 not in cluster.durable.brokers())
        await cluster.reassign({"orders-0": (2,)})
        assert cluster.absent


async def test_only_brokers_rest() -> None:
    async with open_cluster() as cluster:
        with pytest.raises(CannotBeDone, match="node 101 is not a broker"):
            RestWithout(101).on(cluster)


async def test_data_that_a_broker_must_not_have_may_wait_until_it_is_back() -> None:
    async with open_cluster(brokers=3) as cluster, trio.open_nursery() as nursery:
        await cluster.create_topic("orders", [(1, 2)])
        RestWithout(2).on(cluster)
        nursery.start_soon(cluster.settle)
        await cluster.until(lambda: bool(cluster.absent))
        await cluster.reassign({"orders-0": (1, 3)})
        await cluster.until(lambda: bool(cluster.durable.tree.children(paths.STRAYS)))
        assert cluster.absent
