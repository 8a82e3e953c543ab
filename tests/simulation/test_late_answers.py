"""Reads show what was acknowledged before them, and a controller that was deposed answers none of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from attrs import evolve

from simulator import scheduling
from simulator.actions.processes import Crash, Suspend, Wake
from simulator.actions.requests import CreateTopic, CreateTopics
from simulator.actions.sessions import Depose, Disconnect, Reconnect, SlowCommits, lose_answer
from simulator.cluster import CLIENT, SimulatedCluster, simulated_cluster
from simulator.settings import KAFKA_PORT, Settings, host_of
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.client import KafkaConnection
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.schema import Message
from transport.messages import (
    DescribeClusterRequest,
    DescribeReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ListReassignmentsRequest,
    MetadataRequest,
    MetadataResponse,
    Request,
)
from transport.messages.rollouts import DescribeRolloutsRequest
from transport.store import paths
from transport.wire import WireError
from transport.wire.errors import ConnectionBroken

Story = Callable[[SimulatedCluster], Awaitable[None]]
SETTINGS = Settings(brokers=3, session_timeout=4.0, first_controller=101)
ORDERS, NEW = CreateTopic("orders", ((2, 3),)), CreateTopic("new", ((2, 3),))

READS = (
    DescribeClusterRequest(),
    DescribeReassignmentsRequest(),
    DescribeRolloutsRequest(),
    ListPartitionReassignmentsRequest(),
    ListReassignmentsRequest(),
    MetadataRequest(),
)


def tell(story: Story, settings: Settings = SETTINGS) -> None:
    """Run a story on a cluster."""

    async def main() -> None:
        async with simulated_cluster(settings) as cluster:
            await story(cluster)

    scheduling.run(main, seed=3)


async def ask(cluster: SimulatedCluster, request: Request[object], outcomes: list[object]) -> None:
    """Ask the first controller; add its answer or refusal to `outcomes`."""
    try:
        outcomes.append(await cluster.ask(101, request, within=20))
    except (ApiError, WireError) as refusal:
        outcomes.append(refusal)


def require_refused(outcomes: list[object]) -> None:
    """Fail unless a request was refused because another controller is in office."""
    [outcome] = outcomes
    assert isinstance(outcome, ApiError), outcome
    assert outcome.code is ErrorCode.NOT_CONTROLLER


# --- after a pause ------------------------------------------------------------------------------------------------


async def replaced_in_its_sleep(cluster: SimulatedCluster) -> None:
    """Suspend the first controller until the second one has created a topic."""
    await CreateTopics((ORDERS,)).on(cluster)
    Suspend(101, loses_session=True).on(cluster)
    await cluster.until(lambda: cluster.active_controller == 102, within=10)
    await CreateTopics((NEW,)).on(cluster)


@pytest.mark.parametrize("request_", READS, ids=lambda each: type(each).__name__)
def test_a_controller_that_wakes_after_its_session_refuses_the_reads_that_waited(request_: Request[object]) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await replaced_in_its_sleep(cluster)
        outcomes: list[object] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, cluster, request_, outcomes)
            await trio.sleep(0.5)
            Wake(101).on(cluster)
        require_refused(outcomes)
        await cluster.settle()

    tell(story)


def test_a_controller_that_wakes_within_its_session_answers() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await CreateTopics((ORDERS,)).on(cluster)
        outcomes: list[object] = []
        Suspend(101, loses_session=True).on(cluster)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, cluster, MetadataRequest(), outcomes)
            await trio.sleep(2.5)
            Wake(101).on(cluster)
        [answer] = outcomes
        assert not isinstance(answer, Exception)
        assert cluster.active_controller == 101
        await cluster.settle()

    tell(story)


KAFKAS: tuple[tuple[Message, type[Message], int], ...] = (
    (kafka.MetadataRequest(), kafka.MetadataResponse, 12),
    (kafka.DescribeClusterRequest(), kafka.DescribeClusterResponse, 0),
)
KAFKA_SETTINGS = Settings(brokers=3, session_timeout=4.0, first_controller=101, releases=("3.9",))


async def require_unanswered(client: KafkaConnection, request: Message, response: type[Message], version: int) -> None:
    """Fail unless the controller closes the connection instead of answering."""
    with pytest.raises(ConnectionBroken):
        await client.send(request, response, version, timeout=20)


@pytest.mark.parametrize(("request_", "response", "version"), KAFKAS, ids=["Metadata", "DescribeCluster"])
def test_a_controller_of_kafka_brokers_that_wakes_after_its_session_answers_no_client(
    request_: Message, response: type[Message], version: int
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        network = cluster.world.network.at(CLIENT)
        async with (
            open_kafka_connection(network, host_of(101), KAFKA_PORT, client_id=CLIENT) as client,
            trio.open_nursery() as nursery,
        ):
            await replaced_in_its_sleep(cluster)
            nursery.start_soon(require_unanswered, client, request_, response, version)
            await trio.sleep(0.5)
            Wake(101).on(cluster)
        await cluster.settle()

    tell(story, KAFKA_SETTINGS)


# --- without a connection to the store ----------------------------------------------------------------------------


async def cut_off_after_a_loss(cluster: SimulatedCluster) -> None:
    """Let the first controller handle the loss of a broker without replicas, and cut it off from the store."""
    await CreateTopics((ORDERS,)).on(cluster)
    Crash(1, noticed=True).on(cluster)
    await trio.sleep(1)
    Disconnect(101).on(cluster)


def test_a_controller_without_the_store_answers_no_read() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cut_off_after_a_loss(cluster)
        outcomes: list[object] = []
        async with trio.open_nursery() as nursery:
            for request in READS:
                nursery.start_soon(ask, cluster, request, outcomes)
            await trio.sleep(3)
            assert outcomes == []
        for outcome in outcomes:
            require_refused([outcome])
        Reconnect(101).on(cluster)
        await cluster.settle()

    tell(story)


def test_a_controller_that_reaches_the_store_again_answers_what_waited() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cut_off_after_a_loss(cluster)
        outcomes: list[object] = []
        async with trio.open_nursery() as nursery:
            for request in READS:
                nursery.start_soon(ask, cluster, request, outcomes)
            await trio.sleep(1)
            Reconnect(101).on(cluster)
        assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
        assert len(outcomes) == len(READS)
        await cluster.settle()

    tell(story)


@pytest.mark.parametrize("request_", READS, ids=lambda each: type(each).__name__)
def test_a_controller_deposed_by_hand_while_it_is_cut_off_refuses_the_read_that_waited(
    request_: Request[object],
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await CreateTopics((ORDERS,)).on(cluster)
        Disconnect(101).on(cluster)
        Depose().on(cluster)
        await cluster.until(lambda: cluster.active_controller == 102, within=1)
        outcomes: list[object] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, cluster, request_, outcomes)
            await trio.sleep(0.5)
            Reconnect(101).on(cluster)
        require_refused(outcomes)
        await cluster.settle()

    tell(story)


@pytest.mark.parametrize(("request_", "response", "version"), KAFKAS, ids=["Metadata", "DescribeCluster"])
def test_a_controller_of_kafka_brokers_without_the_store_answers_no_client(
    request_: Message, response: type[Message], version: int
) -> None:
    async def story(cluster: SimulatedCluster) -> None:
        network = cluster.world.network.at(CLIENT)
        async with open_kafka_connection(network, host_of(101), KAFKA_PORT, client_id=CLIENT) as client:
            await cut_off_after_a_loss(cluster)
            await require_unanswered(client, request_, response, version)
        Reconnect(101).on(cluster)
        await cluster.settle()

    tell(story, KAFKA_SETTINGS)


# --- while the queue is busy --------------------------------------------------------------------------------------


def test_a_read_shows_a_topic_after_the_answer_of_its_creation_was_lost_and_a_broker_is_too() -> None:
    # The loss of a broker that leads 40 partitions is written two at a time, and each commit takes a while.
    many = CreateTopic("many", ((1, 2),) * 40)

    async def story(cluster: SimulatedCluster) -> None:
        await CreateTopics((many,)).on(cluster)
        SlowCommits(0.3).on(cluster)
        lose_answer(101, path=paths.topic("new")).on(cluster)
        outcomes: list[object] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(NEW.on, cluster)
            await trio.sleep(0.1)
            Crash(1, noticed=True).on(cluster)
        before = cluster.partition("many-0")
        assert before is not None
        assert before.leader == 1, "its loss has not been handled yet"
        await ask(cluster, MetadataRequest(), outcomes)
        [answer] = outcomes
        assert isinstance(answer, MetadataResponse)
        assert "new" in {state.topic for state in answer.partitions}
        SlowCommits(0).on(cluster)
        await cluster.settle()

    tell(story, evolve(SETTINGS, chunk_operations=6))
