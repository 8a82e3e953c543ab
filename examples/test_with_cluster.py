"""Test the counters of counter_service.py in a simulated cluster, as you would test your own service.

Run it with `python -m pytest -p klamm.testing.plugin examples/test_with_cluster.py`.
"""

from __future__ import annotations

import trio

from examples.counter_service import APIS, Add, CounterService
from klamm.testing import ClusterFactory, SimulatedCluster
from transport.errors import ApiError
from transport.wire import WireError


async def test_counters_survive_their_leader_and_move(cluster: ClusterFactory) -> None:
    async with cluster(brokers=5, service=CounterService, own_apis=APIS) as c:
        await c.create_topic("counters", [(1, 2, 3)])
        assert await add(c, 1) == 1
        c.crash(1)
        assert await add(c, 1) == 2
        await c.reassign({"counters-0": (4, 5)})
        await c.until_moved("counters-0")
        assert await add(c, 1) == 3


async def add(c: SimulatedCluster, amount: int) -> int:
    """Add to a counter on its current leader. A request without an answer is repeated, so it may count twice."""
    while True:
        state = c.partition("counters-0")
        try:
            if state is not None and state.leader >= 0:
                return await c.ask(state.leader, Add(state.topic_id, "hits", amount))
        except (ApiError, WireError) as error:
            print(f"{trio.current_time():.3f} s: {error}")
        await trio.sleep(0.1)
