"""Followers that fetch from their leaders, in a whole cluster on virtual time."""

from __future__ import annotations

import pytest
import trio

from simulator import scheduling
from simulator.cluster import simulated_cluster
from simulator.settings import Settings

NAME = "orders-0"


@pytest.mark.requirement("A5")
def test_a_connection_that_died_without_a_word_is_given_up() -> None:
    settings = Settings(brokers=2, fetch_wait=1.0, fetch_timeout=2.0)

    async def run() -> None:
        async with simulated_cluster(settings) as cluster:
            await cluster.create_topic("orders", [(1, 2)])
            await cluster.produce(NAME, [b"before"])
            cluster.silence_connections(1, 2)
            began = trio.current_time()
            await cluster.produce(NAME, [b"after"])
            state = cluster.partition(NAME)
            assert state is not None
            assert (state.isr, state.partition_epoch) == ((1, 2), 0), "nobody left the ISR meanwhile"
            assert trio.current_time() - began < settings.replica_lag_time

    scheduling.run(run, seed=1)
