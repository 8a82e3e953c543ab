"""The world of the network tests, on each supported clock."""

from __future__ import annotations

import pytest
import trio
from trio.abc import Clock

from tests.simulation.networks import CLOCKS, World, make_clock


@pytest.fixture(params=CLOCKS)
def clock(request: pytest.FixtureRequest) -> Clock:
    return make_clock(request.param)


@pytest.fixture
async def world(nursery: trio.Nursery) -> World:
    world = World(nursery)
    await world.listen()
    return world
