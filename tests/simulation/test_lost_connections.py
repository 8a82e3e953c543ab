"""What a lost connection to the store costs a controller whose session lives, by what was in flight on it."""

from __future__ import annotations

import pytest
import trio

from klamm.testing import SimulatedCluster, open_cluster
from klamm.testing.actions import Disconnect, MarkForDeletion, Reconnect, SlowStore, lose_answer

pytestmark = pytest.mark.usefixtures("autojump_clock")

LATENCY = 0.3
"""The seconds that a message to the store takes, each way."""


async def lose_connection(cluster: SimulatedCluster, *, after: float) -> None:
    """Cut the active controller off from the store for a moment, some seconds from now."""
    await trio.sleep(after)
    Disconnect("controller").on(cluster)
    await trio.sleep(0.1)
    Reconnect("controller").on(cluster)
    await trio.sleep(5)


@pytest.mark.parametrize("applied", [True, False])
async def test_a_commit_in_flight_does_not_cost_the_office(*, applied: bool) -> None:
    async with open_cluster() as c:
        lose_answer("controller", applied=applied, path="/brokers/topics/orders").on(c)
        await c.create_topic("orders", [[1, 2]])
        await c.produce("orders-0", [b"paid"])
        await c.settle()
        assert c.durable.controller_epoch() == 1


async def test_a_read_in_flight_costs_the_office() -> None:
    async with open_cluster() as c:
        await c.create_topic("orders", [[1, 2]])
        await c.settle()
        SlowStore({"controller": LATENCY}).on(c)
        # The watch fires after one latency, and the controller reads the list of markers for two more.
        MarkForDeletion("orders").on(c)
        await lose_connection(c, after=1.5 * LATENCY)
        await c.settle()
        assert c.durable.controller_epoch() == 2


async def test_a_connection_without_requests_in_flight_costs_nothing() -> None:
    async with open_cluster() as c:
        await c.create_topic("orders", [[1, 2]])
        await c.settle()
        SlowStore({"controller": LATENCY}).on(c)
        await lose_connection(c, after=1.5 * LATENCY)
        await c.settle()
        assert c.durable.controller_epoch() == 1
