"""Clients ask a controller among Kafka's brokers who is in the cluster, as they ask any node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
import trio
from structlog.testing import capture_logs

from controller.admin.visibility import PROBE
from controller.node import kafka_metadata
from controller.node.service import ControllerService
from tests.kafka.scripted_broker import HOST, ScriptedBroker, protocol, scripted_brokers
from tests.kafka.test_kafka_node import KAFKA, has_orders
from tests.kit.service import Controllers, until
from transport.acls import Operation, Resource
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.client import KafkaConnection
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.messages.create_topics_request import CreatableTopic
from transport.kafka.messages.metadata_request import MetadataRequestTopic as Asked
from transport.kafka.messages.metadata_response import MetadataResponseTopic
from transport.kafka.schema import Message
from transport.metadata import ReplicaAssignment
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.protocol import ANY_VERSION, Create, Delete, Set
from transport.wire import Caller
from transport.wire.errors import ConnectionBroken

OURS: Final = 1001
LISTENERS: Final = ",".join(f"{name}://{HOST}:0" for name in ("INTERNAL", "EXTERNAL"))
NOBODYS: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
NOT_ASKED: Final = -(2**31)
ALL_OF_TOPIC, ALL_OF_CLUSTER = 0b1101_1111_1000, 0b1_1111_1010_0000


@pytest.fixture
async def store(memory: MemoryZooKeeper) -> AsyncIterator[MemoryStore]:
    """Give the test the session of its brokers."""
    async with memory.session() as session:
        yield session


@asynccontextmanager
async def asking(service: ControllerService, listener: str = "INTERNAL") -> AsyncIterator[KafkaConnection]:
    """Connect to a listener of a controller."""
    assert service.node is not None
    [at] = [at for at in service.node.listeners if at.name == listener]
    async with open_kafka_connection(TcpNetwork(), at.host, at.port, client_id="client") as connection:
        yield connection


@asynccontextmanager
async def governed(
    controllers: Controllers, store: MemoryStore, answers: Mapping[type[Message], Message] | None = None, **options: Any
) -> AsyncIterator[tuple[ControllerService, list[ScriptedBroker]]]:
    """Run a controller and two brokers with the topics orders and secret."""
    service = await controllers.start_active(**KAFKA, listeners=LISTENERS, **options)
    async with scripted_brokers(store, 1, 2, answers=answers) as brokers:
        await until(lambda: all(has_orders(broker, kafka.UpdateMetadataRequest) for broker in brokers))
        async with asking(service) as client:
            topics = CreatableTopic("orders", 2, 2), CreatableTopic("secret", 1, 1)
            created = await client.send(kafka.CreateTopicsRequest(topics, 10_000), kafka.CreateTopicsResponse, 7)
            assert [topic.error_code for topic in created.topics] == [0, 0]
        yield service, brokers


async def metadata(client: KafkaConnection, *names: str, version: int = 12, **flags: bool) -> kafka.MetadataResponse:
    """Return what is told of some topics, or of all; no topic is to be created."""
    topics = tuple(Asked(name=name) for name in names) or None
    request = kafka.MetadataRequest(topics, allow_auto_topic_creation=False, **flags)
    return await client.send(request, kafka.MetadataResponse, version)


async def test_clients_see_the_addresses_of_their_listener(controllers: Controllers, store: MemoryStore) -> None:
    async with governed(controllers, store) as (service, brokers):
        ports = {broker.id: broker.port for broker in brokers}
        assert service.node is not None
        own = {at.name: at.port for at in service.node.listeners}
        async with asking(service) as client:
            told = await metadata(client)
            assert {node.node_id: node.port for node in told.brokers} == {**ports, OURS: own["INTERNAL"]}
        async with asking(service, "EXTERNAL") as client:
            told = await metadata(client)
            assert {node.node_id: node.port for node in told.brokers} == {1: 9092, 2: 9092, OURS: own["EXTERNAL"]}
            assert {node.host for node in told.brokers} == {"broker.example", HOST}
            cluster = await client.send(kafka.DescribeClusterRequest(), kafka.DescribeClusterResponse, 1)
            assert {(node.broker_id, node.host, node.port) for node in cluster.brokers} == {
                (node.node_id, node.host, node.port) for node in told.brokers
            }
        assert told.controller_id == cluster.controller_id == OURS
        assert {topic.name: len(topic.partitions) for topic in told.topics} == {"orders": 2, "secret": 1}


async def test_the_id_of_the_cluster_is_told_once_there_is_one(controllers: Controllers, store: MemoryStore) -> None:
    async with governed(controllers, store) as (service, _), asking(service) as client:
        about = kafka.DescribeClusterRequest()
        # A controller takes no office without the id, and keeps its office if the id goes.
        await store.multi([Delete(paths.CLUSTER_ID)])
        assert (await metadata(client)).cluster_id is None
        assert (await client.send(about, kafka.DescribeClusterResponse, 1)).cluster_id == ""
        await store.multi([Create(paths.CLUSTER_ID, b"no JSON")])
        with capture_logs() as logs:
            assert (await metadata(client)).cluster_id is None
        assert [line["event"] for line in logs] == ["clients are not told the id of the cluster"]
        await store.multi([Set(paths.CLUSTER_ID, b'{"version":"1","id":"abc"}', ANY_VERSION)])
        assert (await metadata(client)).cluster_id == "abc"
        assert (await client.send(about, kafka.DescribeClusterResponse, 1)).cluster_id == "abc"
        assert service.is_active


async def test_what_a_client_may_not_describe_is_hidden(controllers: Controllers, store: MemoryStore) -> None:
    denied: set[tuple[Operation, str]] = set()

    def may(_: Caller, operation: Operation, resource: Resource) -> bool:
        return (operation, resource.name) not in denied

    async with governed(controllers, store, authorizer=may) as (service, _), asking(service) as client:
        assert service.office is not None
        topic_id = service.office.context.topic_id("secret")
        denied.add((Operation.DESCRIBE, "secret"))
        assert [topic.name for topic in (await metadata(client)).topics] == ["orders"]
        told = await metadata(client, "secret", "orders", include_topic_authorized_operations=True)
        assert {topic.name: topic.error_code for topic in told.topics} == {"orders": 0, "secret": 29}
        assert told.topics[0] == MetadataResponseTopic(29, "secret")
        # A name of no topic tells a client whether it may describe all topics.
        assert [topic.error_code for topic in (await metadata(client, PROBE)).topics] == [3]
        denied.add((Operation.DESCRIBE, PROBE))
        assert [topic.error_code for topic in (await metadata(client, PROBE)).topics] == [29]
        by_id = kafka.MetadataRequest((Asked(topic_id, None),), allow_auto_topic_creation=False)
        told = await client.send(by_id, kafka.MetadataResponse, 12)
        assert told.topics == (MetadataResponseTopic(29, None, topic_id),)


async def test_operations_are_told_to_those_who_ask(controllers: Controllers, store: MemoryStore) -> None:
    denied: set[tuple[Operation, str]] = set()

    def may(_: Caller, operation: Operation, resource: Resource) -> bool:
        return (operation, resource.name) not in denied

    async def told(client: KafkaConnection, version: int) -> tuple[int, set[int]]:
        flags = {"include_cluster_authorized_operations": True} if version < 11 else {}
        names = "orders", "nosuch"
        found = await metadata(client, *names, version=version, include_topic_authorized_operations=True, **flags)
        return found.cluster_authorized_operations, {topic.topic_authorized_operations for topic in found.topics}

    async with governed(controllers, store, authorizer=may) as (service, _), asking(service) as client:
        assert {topic.topic_authorized_operations for topic in (await metadata(client)).topics} == {NOT_ASKED}
        assert await told(client, 10) == (ALL_OF_CLUSTER, {ALL_OF_TOPIC})
        assert await told(client, 12) == (NOT_ASKED, {ALL_OF_TOPIC})
        denied.update({(Operation.READ, "orders"), (Operation.READ, "nosuch"), (Operation.CREATE, "kafka-cluster")})
        assert await told(client, 8) == (ALL_OF_CLUSTER - 0b10_0000, {ALL_OF_TOPIC - 0b1000})
        denied.add((Operation.DESCRIBE, "kafka-cluster"))
        assert await told(client, 10) == (0, {ALL_OF_TOPIC - 0b1000})
        about = kafka.DescribeClusterRequest(include_cluster_authorized_operations=True)
        assert (await client.send(about, kafka.DescribeClusterResponse, 1)).cluster_authorized_operations == 0


async def test_topics_are_those_that_brokers_know(controllers: Controllers, store: MemoryStore) -> None:
    async with governed(controllers, store) as (service, _), asking(service) as client:
        assert service.office is not None
        context = service.office.context
        going_id = context.topic_id("secret")
        # Nobody can delete it on a broker that is not there, nor lead what was never led.
        lost = formats.TopicZnode({0: ReplicaAssignment((9,))}, NOBODYS)
        await store.multi([Create(paths.topic("lost"), formats.encode_topic(lost))])
        await until(lambda: "lost" in context.topics)
        names = "lost", "no such"
        told = await metadata(client, *names)
        assert {topic.name: topic.error_code for topic in told.topics} == {"lost": 3, "no such": 17}
        asked = kafka.DeleteTopicsRequest(topic_names=("secret",), timeout_ms=10_000)
        await client.send(asked, kafka.DeleteTopicsResponse, 5)
        assert [topic.name for topic in (await metadata(client)).topics] == ["orders"]
        ids = tuple(Asked(topic_id, None) for topic_id in (going_id, NOBODYS))
        told = await client.send(kafka.MetadataRequest(ids), kafka.MetadataResponse, 12)
        assert {topic.error_code for topic in told.topics} == {ErrorCode.UNKNOWN_TOPIC_ID}


async def test_ids_are_told_where_brokers_know_them(controllers: Controllers, store: MemoryStore) -> None:
    answers: dict[type[Message], Message] = {kafka.DescribeConfigsRequest: protocol("2.7")}
    async with governed(controllers, store, answers) as (service, _), asking(service) as client:
        assert service.office is not None
        topic_id = service.office.context.topic_id("orders")
        assert topic_id
        assert {topic.topic_id for topic in (await metadata(client)).topics} == {""}
        told = await client.send(kafka.MetadataRequest((Asked(topic_id, None),)), kafka.MetadataResponse, 12)
        assert [topic.error_code for topic in told.topics] == [ErrorCode.UNKNOWN_TOPIC_ID]


async def test_a_topic_that_brokers_cannot_be_told_of_is_left_out(controllers: Controllers, store: MemoryStore) -> None:
    async with governed(controllers, store) as (service, _), asking(service) as client:
        assert service.office is not None
        context = service.office.context
        odd = formats.TopicZnode({0: ReplicaAssignment((1,))}, "no.uuid")
        await store.multi([Create(paths.topic("odd"), formats.encode_topic(odd))])
        await until(lambda: any(tp.topic == "odd" for tp in context.leadership))
        assert {topic.name for topic in (await metadata(client)).topics} == {"orders", "secret"}


async def test_a_long_answer_lets_others_have_their_turns(
    controllers: Controllers, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_metadata, "SLICE", 1)
    async with governed(controllers, store) as (service, _), asking(service) as client:
        turns = 0

        async def count() -> None:
            nonlocal turns
            turns += 1
            await trio.lowlevel.checkpoint()

        monkeypatch.setattr(kafka_metadata, "checkpoint", count)
        assert len((await metadata(client)).topics) == 2
        assert turns == 2


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        (2, 114, "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"),
        (9, 115, "Unsupported endpoint type 9"),
    ],
)
async def test_other_nodes_than_brokers_are_not_described(
    controllers: Controllers, store: MemoryStore, kind: int, error: int, text: str
) -> None:
    async with governed(controllers, store) as (service, _), asking(service) as client:
        about = kafka.DescribeClusterRequest(endpoint_type=kind)
        told = await client.send(about, kafka.DescribeClusterResponse, 1)
        assert (told.error_code, told.error_message, told.brokers) == (error, text, ())


@pytest.mark.parametrize("question", [kafka.MetadataRequest(None), kafka.DescribeClusterRequest()])
async def test_a_standby_sends_clients_to_another_node(controllers: Controllers, question: Message) -> None:
    await controllers.start_active(**KAFKA)
    standby = await controllers.start(1002, **KAFKA)
    async with asking(standby) as client:
        with capture_logs() as logs, pytest.raises(ConnectionBroken):
            await client.send(question, kafka.MetadataResponse, 1)
    assert [line["reason"] for line in logs if "client" in line["event"]] == [kafka_metadata.NOT_IN_OFFICE]
