"""The client of Kafka's protocol and a real broker of Apache Kafka understand each other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.kafka.real_brokers import RealBroker, real_broker
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.channel import BrokerConnection
from transport.kafka.client import KafkaConnection
from transport.kafka.messages.describe_configs_request import DescribeConfigsResource
from transport.kafka.orders import Node
from transport.messages import (
    BrokerEndpoint,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    PartitionState,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from transport.metadata import Listener
from transport.zookeeper_server import HOST

CONTROLLER = BrokerEndpoint(1001, HOST, 1)
EPOCH = 1_000
"""A controller epoch above that of the broker's own controller."""

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
BROKER_RESOURCE = 4


@pytest.fixture
async def broker(kafka_jars: Path, zookeeper: str, tmp_path: Path) -> AsyncIterator[RealBroker]:
    async with real_broker(kafka_jars, f"{zookeeper}/kafka-{tmp_path.name}", 1, tmp_path) as running:
        yield running


@asynccontextmanager
async def connected(broker: RealBroker) -> AsyncIterator[KafkaConnection]:
    stream = await trio.open_tcp_stream(HOST, broker.port)
    connection = KafkaConnection(stream, peer=f"broker-{broker.id}", client_id="klamm")
    await connection.negotiate()
    yield connection
    await connection.close()


def state(leader_epoch: int) -> PartitionState:
    return PartitionState("orders", TOPIC_ID, 0, EPOCH, 1, leader_epoch, (1,), 0, (1,))


async def test_a_broker_of_3_9_takes_the_orders_of_a_controller(broker: RealBroker) -> None:
    async with connected(broker) as client:
        await require_protocol_of_cluster(client)
        kinds = (kafka.LeaderAndIsrRequest, kafka.StopReplicaRequest, kafka.UpdateMetadataRequest)
        assert [client.version_of(kind) for kind in kinds] == [7, 4, 8]
        node = Node(1, (Listener("PLAINTEXT", HOST, broker.port),))
        orders = BrokerConnection(client, lambda: (node,))
        # A broker whose epoch an order does not know takes it.
        told = await orders.call(UpdateMetadataRequest(1001, EPOCH, -1, CONTROLLER, None, (state(3),)))
        assert told is not None
        item = LeaderAndIsrPartition(state(3), is_new=True)
        led = await orders.call(LeaderAndIsrRequest(1001, EPOCH, -1, (item,)))
        assert [(one.topic, one.error) for one in led.partitions] == [("orders", ErrorCode.NONE)]
        [topic] = (await metadata(client)).topics
        [partition] = topic.partitions
        assert (topic.name, topic.topic_id, partition.leader_id, partition.leader_epoch) == ("orders", TOPIC_ID, 1, 3)
        assert [log.name for log in broker.logs("orders")] == ["orders-0"]
        # Sent again, the same order is stale for the broker, and no refusal for us.
        again = await orders.call(LeaderAndIsrRequest(1001, EPOCH, -1, (item,)))
        assert [one.error for one in again.partitions] == [ErrorCode.NONE]
        stop = StopReplicaPartition("orders", TOPIC_ID, 0, 4, delete=True)
        stopped = await orders.call(StopReplicaRequest(1001, EPOCH, -1, (stop,)))
        assert [one.error for one in stopped.partitions] == [ErrorCode.NONE]
        assert "orders-0" not in [log.name for log in broker.logs("orders")]


@pytest.mark.soak
async def test_a_deposed_controller_is_refused(broker: RealBroker) -> None:
    async with connected(broker) as client:
        orders = BrokerConnection(client, lambda: ())
        await orders.call(UpdateMetadataRequest(1001, EPOCH, -1, CONTROLLER, None, ()))
        with pytest.raises(ApiError) as refusal:
            await orders.call(LeaderAndIsrRequest(1001, EPOCH - 1, -1, ()))
        assert refusal.value.code is ErrorCode.STALE_CONTROLLER_EPOCH


async def require_protocol_of_cluster(client: KafkaConnection) -> None:
    """Require that a broker names the protocol of its cluster."""
    wanted = DescribeConfigsResource(BROKER_RESOURCE, "1", ("inter.broker.protocol.version",))
    version = client.version_of(kafka.DescribeConfigsRequest)
    request = kafka.DescribeConfigsRequest(resources=(wanted,))
    [result] = (await client.send(request, kafka.DescribeConfigsResponse, version)).results
    assert [(config.name, config.value) for config in result.configs] == [("inter.broker.protocol.version", "3.9-IV0")]


async def metadata(client: KafkaConnection) -> kafka.MetadataResponse:
    version = client.version_of(kafka.MetadataRequest)
    return await client.send(kafka.MetadataRequest(topics=None), kafka.MetadataResponse, version)
