"""Orders of a controller reach a broker in Kafka's protocol, and its answers mean what Klamm's own brokers mean."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from attrs import define, field
from trio.testing import memory_stream_pair

from controller.channels.sendable import without_faults
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.channel import BrokerConnection, encode_order
from transport.kafka.client import KafkaConnection
from transport.kafka.header import RequestHeader
from transport.kafka.messages.leader_and_isr_response import LeaderAndIsrPartitionError, LeaderAndIsrTopicError
from transport.kafka.messages.stop_replica_request import StopReplicaTopicV1
from transport.kafka.messages.stop_replica_response import StopReplicaPartitionError
from transport.kafka.orders import Node
from transport.kafka.schema import Message, Versions, parse_versions
from transport.kafka.server import KafkaRequest, serve_stream
from transport.messages import (
    BrokerEndpoint,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    ListReassignmentsRequest,
    PartitionError,
    PartitionState,
    Request,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from transport.metadata import Listener, SecurityProtocol
from transport.wire.errors import CodecError, UnsupportedApi, Untrusted

ID = "AAAAAAAAAAAAAAAAAAAAAQ"
OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAg"
CONTROLLER = BrokerEndpoint(101, "controller", 9999)
NODES = (
    Node(1, (Listener("INTERNAL", "one", 9092), Listener("EXTERNAL", "one.example", 9093, SecurityProtocol.SSL)), "a"),
    Node(2, (Listener("INTERNAL", "two", 9092),)),
    Node(101, (Listener("INTERNAL", "controller", 9099),)),
)


def state(topic: str, number: int, topic_id: str = ID, **changes: Any) -> PartitionState:
    known: dict[str, Any] = {"controller_epoch": 3, "leader": 2, "leader_epoch": 4, "isr": (2, 1), "partition_epoch": 5}
    return PartitionState(topic, topic_id, number, **(known | {"replicas": (1, 2)} | changes))


def stop(number: int) -> StopReplicaPartition:
    return StopReplicaPartition("orders", ID, number, 0, delete=True)


@define
class FakeBroker:
    """Records the requests of a controller, and answers each api with the next of its responses."""

    answers: Mapping[type[Message], Message]
    offered: Mapping[int, Versions] = field(factory=dict)
    received: list[tuple[RequestHeader, Any]] = field(factory=list)

    async def handle(self, request: KafkaRequest) -> Message:
        await trio.lowlevel.checkpoint()
        self.received.append((request.header, request.message))
        return self.answers[type(request.message)]


@asynccontextmanager
async def connected(broker: FakeBroker, *, has_topic_ids: bool = True) -> AsyncIterator[BrokerConnection]:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve_stream, theirs, dict.fromkeys(broker.answers, broker.handle)))
        connection = KafkaConnection(ours, peer="broker-1", client_id="controller-101")
        await connection.negotiate()
        yield BrokerConnection(connection, lambda: NODES, has_topic_ids=lambda: has_topic_ids)
        await connection.close()


def order(*items: LeaderAndIsrPartition) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(101, 3, 77, items)


async def test_leader_and_isr_groups_partitions_by_topic() -> None:
    answer = kafka.LeaderAndIsrResponse(
        topics=(
            LeaderAndIsrTopicError(ID, (LeaderAndIsrPartitionError(partition_index=0), _error(1, 56))),
            LeaderAndIsrTopicError(OTHER_ID, (_error(0, 11),)),
        )
    )
    broker = FakeBroker({kafka.LeaderAndIsrRequest: answer})
    items = [LeaderAndIsrPartition(state("orders", n), n == 1) for n in (0, 1)]
    async with connected(broker) as connection:
        outcome = await connection.call(order(*items, LeaderAndIsrPartition(state("paid", 0, OTHER_ID), is_new=False)))
    [(header, request)] = broker.received
    assert (header.version, header.client_id) == (7, "controller-101")
    assert (request.controller_id, request.controller_epoch, request.broker_epoch) == (101, 3, 77)
    assert [(topic.topic_name, topic.topic_id) for topic in request.topic_states] == [
        ("orders", ID),
        ("paid", OTHER_ID),
    ]
    assert [entry.is_new for entry in request.topic_states[0].partition_states] == [False, True]
    [leader] = request.live_leaders
    assert (leader.broker_id, leader.host_name, leader.port) == (2, "two", 9092)
    # A leader epoch that the broker knows already (11) is no refusal.
    assert outcome.partitions == (
        PartitionError("orders", 0),
        PartitionError("orders", 1, ErrorCode.KAFKA_STORAGE_ERROR),
        PartitionError("paid", 0),
    )


def _error(number: int, code: int) -> LeaderAndIsrPartitionError:
    return LeaderAndIsrPartitionError(partition_index=number, error_code=code)


async def test_without_topic_ids_no_version_is_used_that_has_them() -> None:
    broker = FakeBroker(
        {
            kafka.LeaderAndIsrRequest: kafka.LeaderAndIsrResponse(
                partition_errors=(LeaderAndIsrPartitionError("orders", 0, 0),)
            ),
            kafka.UpdateMetadataRequest: kafka.UpdateMetadataResponse(),
        }
    )
    recovering = state("orders", 0, leader_recovery_state=1)
    async with connected(broker, has_topic_ids=False) as connection:
        outcome = await connection.call(order(LeaderAndIsrPartition(recovering, is_new=True)))
        await connection.call(UpdateMetadataRequest(101, 3, 77, CONTROLLER, None, (recovering,)))
    assert outcome.partitions == (PartitionError("orders", 0),)
    assert [header.version for header, _ in broker.received] == [4, 6]


async def test_each_update_metadata_has_all_nodes_and_their_listeners() -> None:
    broker = FakeBroker({kafka.UpdateMetadataRequest: kafka.UpdateMetadataResponse()})
    async with connected(broker) as connection:
        await connection.call(
            UpdateMetadataRequest(101, 3, 77, CONTROLLER, None, (state("orders", 0, offline_replicas=(1,)),))
        )
    [(header, request)] = broker.received
    assert header.version == 8
    assert [(node.id, node.rack) for node in request.live_brokers] == [(1, "a"), (2, None), (101, None)]
    [_, external] = request.live_brokers[0].endpoints
    expected = ("EXTERNAL", "one.example", 9093, 1)
    assert (external.listener, external.host, external.port, external.security_protocol) == expected
    [entry] = request.topic_states[0].partition_states
    assert (entry.leader, entry.isr, entry.zk_version, entry.offline_replicas) == (2, (2, 1), 5, (1,))


async def test_stop_replica_says_for_each_partition_whether_to_delete() -> None:
    answer = kafka.StopReplicaResponse(partition_errors=(StopReplicaPartitionError("orders", 1, 74),))
    broker = FakeBroker({kafka.StopReplicaRequest: answer})
    stops = (
        StopReplicaPartition("orders", ID, 0, 4, delete=False),
        StopReplicaPartition("orders", ID, 1, -2, delete=True),
    )
    async with connected(broker) as connection:
        outcome = await connection.call(StopReplicaRequest(101, 3, 77, stops))
    [(header, request)] = broker.received
    entries = [
        (e.partition_index, e.leader_epoch, e.delete_partition) for e in request.topic_states[0].partition_states
    ]
    assert (header.version, entries) == (4, [(0, 4, False), (1, -2, True)])
    assert outcome.partitions == (PartitionError("orders", 1, ErrorCode.FENCED_LEADER_EPOCH),)


class OldStopReplicaRequest(kafka.StopReplicaRequest, frozen=True):
    """StopReplica as releases before 2.6 offer it."""

    versions = parse_versions("0-2")


async def test_an_old_broker_is_first_told_what_to_delete_and_then_what_to_stop() -> None:
    answer = kafka.StopReplicaResponse(partition_errors=(StopReplicaPartitionError("orders", 1, 56),))
    broker = FakeBroker({kafka.StopReplicaRequest: answer, OldStopReplicaRequest: answer})
    stops = [StopReplicaPartition("orders", ID, number, 4, delete=number > 1) for number in range(4)]
    async with connected(broker) as connection:
        outcome = await connection.call(StopReplicaRequest(101, 3, 77, tuple(stops)))
        only = await connection.call(StopReplicaRequest(101, 3, 77, (stops[0],)))
    told = [(header.version, request.delete_partitions, request.topics) for header, request in broker.received]
    deleted, stopped, one = (StopReplicaTopicV1("orders", numbers) for numbers in ((2, 3), (0, 1), (0,)))
    assert told == [(2, True, (deleted,)), (2, False, (stopped,)), (2, False, (one,))]
    assert {
        (request.controller_id, request.controller_epoch, request.broker_epoch) for _, request in broker.received
    } == {(101, 3, 77)}
    failed = PartitionError("orders", 1, ErrorCode.KAFKA_STORAGE_ERROR)
    assert (outcome.partitions, only.partitions) == ((failed, failed), (failed,))


@pytest.mark.parametrize("code", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.STALE_CONTROLLER_EPOCH])
async def test_the_error_of_a_whole_request_is_an_api_error(code: ErrorCode) -> None:
    broker = FakeBroker(
        {
            kafka.LeaderAndIsrRequest: kafka.LeaderAndIsrResponse(error_code=code),
            kafka.UpdateMetadataRequest: kafka.UpdateMetadataResponse(code),
            kafka.StopReplicaRequest: kafka.StopReplicaResponse(code),
        }
    )
    requests = (order(), UpdateMetadataRequest(101, 3, 77, CONTROLLER, None, ()), StopReplicaRequest(101, 3, 77, ()))
    async with connected(broker) as connection:
        for request in requests:
            with pytest.raises(ApiError) as refusal:
                await connection.call(request)
            assert refusal.value.code is code


async def test_orders_that_an_acl_forbids_are_not_answered_but_sent_again() -> None:
    broker = FakeBroker({kafka.StopReplicaRequest: kafka.StopReplicaResponse(31)})
    async with connected(broker) as connection:
        with pytest.raises(Untrusted, match="our principal needs ClusterAction on the cluster"):
            await connection.call(StopReplicaRequest(101, 3, 77, ()))


async def test_what_kafkas_brokers_do_not_take_is_refused_by_name() -> None:
    async with connected(FakeBroker({kafka.LeaderAndIsrRequest: kafka.LeaderAndIsrResponse()})) as connection:
        with pytest.raises(UnsupportedApi, match="ListReassignmentsRequest is not sent to Kafka's brokers"):
            await connection.call(ListReassignmentsRequest())
        with pytest.raises(UnsupportedApi, match="broker-1 does not offer StopReplica"):
            await connection.call(StopReplicaRequest(101, 3, 77, ()))


@pytest.mark.parametrize(
    ("order", "rows"),
    [
        (UpdateMetadataRequest(101, 3, 77, CONTROLLER, None, (state("a", 0), state("b", 0, "no-id"))), 1),
        (UpdateMetadataRequest(101, 3, 77, CONTROLLER, None, (state("a", 0), state("b", 0, leader=2**31))), 1),
        (
            StopReplicaRequest(101, 3, 77, tuple(StopReplicaPartition("t", ID, n, 0, delete=True) for n in (2**31, 5))),
            1,
        ),
        (LeaderAndIsrRequest(101, 3, 77, (LeaderAndIsrPartition(state("a", 0, "no-id"), is_new=True),)), 0),
    ],
)
def test_a_row_that_kafkas_protocol_cannot_express_is_left_out_alone(order: Request[Any], rows: int) -> None:
    with pytest.raises(CodecError):
        encode_order(order)
    left, faults = without_faults(order, encode_order)
    assert left is not None
    assert len(faults) == 1
    assert len(left.lists()["partitions"]) == rows
    assert encode_order(left)


def test_what_kafkas_brokers_are_not_sent_cannot_be_mended() -> None:
    assert without_faults(ListReassignmentsRequest(), encode_order) == (None, [])
