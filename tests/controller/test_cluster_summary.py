"""The summary of the cluster."""

from __future__ import annotations

import pytest
from attrs import evolve

from controller.model.facts import BrokerShuttingDown, DeletionStarted
from controller.node.quarantine import FAULTS, Quarantine
from tests.controller.conftest import TP, Bench
from transport.messages import (
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribedBroker,
    NewTopic,
)


async def describe(bench: Bench) -> DescribeClusterResponse:
    return await bench.ask(DescribeClusterRequest(), DescribeClusterResponse)


def numbers(broker: DescribedBroker) -> tuple[int, int, int]:
    return broker.endpoint.id, broker.leaders, broker.replicas


@pytest.mark.requirement("D2", "D11")
async def test_brokers_and_counts(bench: Bench) -> None:
    await bench.start((1, 2), (2, 1), (3,), (4, 1), brokers=(1, 2, 3, 4))
    found = await describe(bench)
    assert [numbers(broker) for broker in found.brokers] == [(1, 1, 3), (2, 1, 2), (3, 1, 1), (4, 1, 1)]
    assert (found.controller, found.controller_epoch, found.topics, found.partitions) == (
        bench.context.controller,
        1,
        1,
        4,
    )
    assert (found.offline, found.under_replicated, found.without_preferred_leader) == (0, 0, 0)

    await bench.kill(3)
    await bench.kill(4)
    bench.context.apply(BrokerShuttingDown(2))
    found = await describe(bench)
    assert (found.offline, found.under_replicated, found.without_preferred_leader) == (1, 1, 2)
    assert [broker.is_shutting_down for broker in found.brokers] == [False, True]


async def test_a_partition_that_never_had_a_leader_is_offline(bench: Bench) -> None:
    await bench.start((7,), brokers=(1,))
    assert (await describe(bench)).offline == 1


async def test_a_partition_without_a_leader_is_offline_and_not_under_its_min_isr_as_well(bench: Bench) -> None:
    bench.context.config = evolve(bench.context.config, min_insync_replicas=2)
    await bench.start((1, 2), (3, 4), brokers=(1, 2, 3, 4))
    await bench.kill(4)
    found = await describe(bench)
    assert (found.under_min_isr, found.offline) == (1, 0)
    await bench.kill(3)
    found = await describe(bench)
    assert (found.under_min_isr, found.offline) == (0, 1)


async def test_moves_and_deletions(bench: Bench) -> None:
    await bench.start((1, 2), brokers=(1, 2, 3))
    await bench.move(TP, (2, 3))
    assert (await describe(bench)).being_reassigned == 1
    bench.context.apply(DeletionStarted(TP.topic))
    found = await describe(bench)
    assert (found.topics, found.topics_being_deleted, found.partitions, found.being_reassigned) == (0, 1, 0, 0)
    assert [numbers(broker)[1:] for broker in found.brokers] == [(0, 0)] * 3


def test_what_is_set_aside_is_called_by_its_name_and_tells_no_secrets() -> None:
    quarantine = Quarantine()
    secret = CreateTopicsRequest((NewTopic("orders", 1, 1, (), (("key", "secret"),)),))
    for _ in range(FAULTS):
        quarantine.fault("orders", 0)
        quarantine.fault(secret, 0)
    assert quarantine.names() == ("CreateTopics", "orders")
