"""The metadata that brokers receive, in a whole cluster on virtual time."""

from __future__ import annotations

from functools import partial

import pytest

from broker.kit import BrokerHandle
from broker.metadata_cache import MetadataCache
from examples.counter_service import APIS, CounterService
from simulator import scheduling
from simulator.cluster import SimulatedCluster, simulated_cluster
from simulator.settings import Settings
from transport.metadata import TopicPartition

FORGETFUL = 2


class Forgetful(CounterService):
    """Fails UpdateMetadata a given number of times, on one broker; `knows` is the last metadata that it applied."""

    def __init__(self, failures: list[str], knows: dict[str, bool], handle: BrokerHandle) -> None:
        super().__init__(handle)
        self._failures, self._knows = failures, knows

    async def update_metadata(self, metadata: MetadataCache) -> None:
        if self._me != FORGETFUL:
            return
        if self._failures:
            raise ValueError(self._failures.pop())
        self._knows["orders"] = metadata.partition(TopicPartition("orders", 0)) is not None


@pytest.mark.requirement("E2")
@pytest.mark.parametrize("failures", [1, 3])
def test_a_broker_that_failed_at_the_metadata_is_told_again(failures: int) -> None:
    left: list[str] = []
    knows: dict[str, bool] = {}
    settings = Settings(brokers=3, service=partial(Forgetful, left, knows), own_apis=APIS)

    async def story(cluster: SimulatedCluster) -> None:
        left.extend(["a fault of the service"] * failures)
        epoch = cluster.durable.controller_epoch()
        await cluster.create_topic("orders", [(1,)])
        await cluster.until(lambda: knows.get("orders", False), what="that broker 2 knows the topic")
        assert not left
        assert cluster.durable.controller_epoch() == epoch, "one election is enough"

    async def run() -> None:
        async with simulated_cluster(settings) as cluster:
            await story(cluster)

    scheduling.run(run, seed=1)
