"""The world of the network tests, on each supported clock, and histories for the invariants."""

from __future__ import annotations

import pytest
import trio
from trio.abc import Clock

from tests.simulation.histories import History
from tests.simulation.networks import CLOCKS, Net, make_clock


@pytest.fixture(params=CLOCKS)
def clock(request: pytest.FixtureRequest) -> Clock:
    return make_clock(request.param)


@pytest.fixture
async def world(clock: Clock, nursery: trio.Nursery) -> Net:  # noqa: ARG001 - trio takes the test's clock
    world = Net(nursery)
    await world.listen()
    return world


@pytest.fixture
async def h() -> History:
    """Give the test a history in which nothing has happened."""
    return History()
