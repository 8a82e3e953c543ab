"""Controlled shutdowns of brokers in a simulated cluster: producers notice nothing."""

from __future__ import annotations

import pytest

from klamm.testing import open_cluster

pytestmark = pytest.mark.usefixtures("autojump_clock")


@pytest.mark.requirement("D6")
async def test_leadership_has_moved_before_a_broker_is_gone() -> None:
    async with open_cluster(brokers=3) as c:
        await c.create_topic("t", [(1, 2, 3)])
        await c.produce("t-0", [b"before"])
        await c.stop(1)
        state = c.partition("t-0")
        assert state is not None
        # One epoch for the election; the end of the registration needs none.
        assert (state.leader, state.isr, state.leader_epoch) == (2, (2, 3), 1)
        assert await c.produce("t-0", [b"after"]) == 1
        c.restart(1)
        await c.settle()
        back = c.partition("t-0")
        assert back is not None
        assert set(back.isr) == {1, 2, 3}


@pytest.mark.requirement("D6")
async def test_the_last_replica_stops_regardless_and_leads_again_when_it_returns() -> None:
    async with open_cluster(brokers=2) as c:
        await c.create_topic("t", [(1, 2)])
        await c.produce("t-0", [b"before"])
        await c.stop(2)
        await c.stop(1)
        state = c.partition("t-0")
        assert state is not None
        assert state.isr == (1,)
        c.restart(1)
        c.restart(2)
        await c.settle()
        assert await c.produce("t-0", [b"after"]) == 1


@pytest.mark.requirement("D6")
async def test_a_broker_that_stops_while_the_controller_moves_asks_the_next_one() -> None:
    async with open_cluster(brokers=3) as c:
        await c.create_topic("t", [(1, 2, 3)])
        active = c.active_controller
        assert active is not None
        c.crash(active)
        await c.stop(1)
        state = c.partition("t-0")
        assert state is not None
        assert (state.leader, set(state.isr)) == (2, {2, 3})
        c.restart(active)
        c.restart(1)
        await c.settle()
