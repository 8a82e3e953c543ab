"""The end of a move in a cluster of Kafka's, whose brokers learn of it after the controller."""

from __future__ import annotations

from controller.admin.kafka_admin import open_kafka_admin
from tests.kafka.scripted_nodes import ScriptedNodes, scripted_nodes
from tests.kafka.test_kafka_admin import NO_MOVES, in_turn, reassigned
from transport.kafka import messages as kafka
from transport.kafka.messages.list_partition_reassignments_response import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from transport.messages import ReassignablePartition
from transport.network import TcpNetwork


def growing(*replicas: int, adding: int) -> kafka.ListPartitionReassignmentsResponse:
    """Return a reassignment of the partition that only adds a replica."""
    move = OngoingPartitionReassignment(0, replicas, (adding,), ())
    return kafka.ListPartitionReassignmentsResponse(topics=(OngoingTopicReassignment("orders", (move,)),))


def catching_up(cluster: ScriptedNodes, *replicas: int) -> None:
    """Let the node show other replicas only when it has been asked a few times."""

    def answer(request: kafka.MetadataRequest) -> kafka.MetadataResponse:
        if len(cluster.nodes[1].questions(kafka.MetadataRequest)) > 5:
            cluster.show("orders", replicas)
        return cluster.metadata(request)

    cluster.nodes[1].answers[kafka.MetadataRequest] = answer


async def test_a_broker_that_has_not_heard_of_a_move_is_asked_again() -> None:
    async with scripted_nodes(1, answers={kafka.AlterPartitionReassignmentsRequest: reassigned}) as cluster:
        cluster.show("orders", (2, 1, 3))
        catching_up(cluster, 2, 1)
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            await admin.alter_partition_reassignments([ReassignablePartition("orders", 0, (2, 1))])
            [state] = (await admin.read_metadata(["orders"])).partitions
            assert state.replicas == (2, 1)
            asked = len(cluster.nodes[1].questions(kafka.MetadataRequest))
            await admin.read_metadata(["orders"])
            assert len(cluster.nodes[1].questions(kafka.MetadataRequest)) == asked + 1


async def test_a_broker_that_has_not_heard_of_a_cancel_is_asked_again() -> None:
    async with scripted_nodes(1, answers={kafka.AlterPartitionReassignmentsRequest: reassigned}) as cluster:
        cluster.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = in_turn(growing(2, 1, adding=1), NO_MOVES)
        cluster.show("orders", (2, 1))
        catching_up(cluster, 2)
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            await admin.list_partition_reassignments()
            await admin.alter_partition_reassignments([ReassignablePartition("orders", 0, None)])
            [state] = (await admin.read_metadata(["orders"])).partitions
            assert state.replicas == (2,)


async def test_a_move_that_only_added_is_over_at_once() -> None:
    async with scripted_nodes(1) as cluster:
        cluster.nodes[1].answers[kafka.ListPartitionReassignmentsRequest] = in_turn(growing(2, 1, adding=1), NO_MOVES)
        cluster.show("orders", (2, 1))
        async with open_kafka_admin(TcpNetwork(), cluster.bootstrap) as admin:
            assert len(await admin.list_partition_reassignments()) == 1
            asked = len(cluster.nodes[1].questions(kafka.MetadataRequest))
            [state] = (await admin.read_metadata(["orders"])).partitions
            assert (state.replicas, state.is_being_reassigned) == ((2, 1), False)
            assert len(cluster.nodes[1].questions(kafka.MetadataRequest)) == asked + 1
