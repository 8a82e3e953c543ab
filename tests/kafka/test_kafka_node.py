"""A controller among brokers of Apache Kafka: it is announced as a node, gives orders, and answers their requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from controller.config import ControllerConfig
from controller.node.kafka_node import CannotListen
from controller.node.service import ControllerService
from klamm import open_admin, run
from tests.kafka.scripted_broker import HOST, ScriptedBroker, scripted_brokers
from tests.kit.service import Controllers, until
from transport.acls import Operation
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.client import KafkaConnection
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.messages.alter_partition_request import BrokerState, PartitionData, TopicData
from transport.kafka.schema import Message
from transport.messages import NewTopic
from transport.metadata import LeaderAndIsr, Listener, TopicPartition
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.zookeeper_server import free_port

TP = TopicPartition("orders", 0)
KAFKA: dict[str, Any] = {"kafka": True, "inter_broker_listener_name": "internal"}


@pytest.fixture
async def store(memory: MemoryZooKeeper) -> AsyncIterator[MemoryStore]:
    """Give the test the session of its brokers."""
    async with memory.session() as session:
        yield session


@asynccontextmanager
async def cluster(
    controllers: Controllers, store: MemoryStore, *ids: int
) -> AsyncIterator[tuple[ControllerService, list[ScriptedBroker]]]:
    """Run a controller, and brokers that start after it."""
    service = await controllers.start_active(**KAFKA)
    async with scripted_brokers(store, *ids) as brokers:
        await until(lambda: all(has_orders(broker, kafka.UpdateMetadataRequest) for broker in brokers))
        yield service, brokers


async def create_topic(service: ControllerService, replicas: int) -> LeaderAndIsr:
    """Create a topic with one partition and wait for its leader."""
    async with open_admin(bootstrap=[(service.endpoint.host, service.endpoint.port)]) as admin:
        [created] = (await admin.create_topics([NewTopic(TP.topic, 1, replicas)])).topics
        assert created.error is ErrorCode.NONE
    office = service.office
    assert office is not None
    await until(lambda: TP in office.context.leadership)
    return office.context.leadership[TP]


@asynccontextmanager
async def asking(service: ControllerService) -> AsyncIterator[KafkaConnection]:
    """Connect as a broker does: to the address of the controller that brokers are told."""
    assert service.node is not None
    [at] = service.node.listeners
    async with open_kafka_connection(TcpNetwork(), at.host, at.port, client_id="broker-1") as connection:
        yield connection


def epoch_of(service: ControllerService, broker_id: int) -> int:
    assert service.office is not None
    return service.office.context.brokers[broker_id].epoch


def proposal(service: ControllerService, led: LeaderAndIsr, isr: tuple[int, ...], version: int) -> Message:
    """Return what a leader sends to have another ISR, in the form of a version."""
    assert service.office is not None
    members = {"new_isr": isr} if version < 3 else {"new_isr_with_epochs": tuple(map(BrokerState, isr))}
    row = PartitionData(TP.partition, led.leader_epoch, partition_epoch=led.partition_epoch, **members)
    name = {"topic_id": service.office.context.topic_id(TP.topic)} if version >= 2 else {"topic_name": TP.topic}
    topic = TopicData(**name, partitions=(row,))
    return kafka.AlterPartitionRequest(led.leader, epoch_of(service, led.leader), (topic,))


async def test_brokers_are_told_of_each_other_and_of_the_controller(
    controllers: Controllers, store: MemoryStore
) -> None:
    async with cluster(controllers, store, 1, 2) as (service, brokers):
        assert service.node is not None
        [listener] = service.node.listeners
        assert (listener.name, listener.host) == ("INTERNAL", HOST)
        ours = (Listener("INTERNAL", HOST, listener.port),)
        expected = {1: brokers[0].listeners, 2: brokers[1].listeners, 1001: ours}
        for broker in brokers:
            await until(partial(is_told, broker, expected))
            assert broker.told(kafka.UpdateMetadataRequest)[-1].controller_id == 1001


def is_told(broker: ScriptedBroker, nodes: dict[int, tuple[Listener, ...]]) -> bool:
    """Return whether these are the nodes of the cluster that a broker was told last."""
    live = broker.told(kafka.UpdateMetadataRequest)[-1].live_brokers
    return nodes == {node.id: tuple(Listener(at.listener, at.host, at.port) for at in node.endpoints) for node in live}


def has_orders(broker: ScriptedBroker, kind: type[Message]) -> bool:
    return bool(broker.told(kind))


async def test_brokers_are_given_their_orders(controllers: Controllers, store: MemoryStore) -> None:
    async with cluster(controllers, store, 1, 2) as (service, brokers):
        led = await create_topic(service, 2)
        for broker in brokers:
            await until(partial(has_orders, broker, kafka.LeaderAndIsrRequest))
            [order] = broker.told(kafka.LeaderAndIsrRequest)
            [topic] = order.topic_states
            [state] = topic.partition_states
            assert (topic.topic_name, state.leader, state.isr, state.is_new) == ("orders", led.leader, led.isr, True)
            assert order.broker_epoch == epoch_of(service, broker.id)
            assert order.controller_id == 1001


class Refusing(TcpNetwork):
    """A network that remembers whether a connection was refused."""

    def __init__(self) -> None:
        super().__init__()
        self.was_refused = trio.Event()

    async def connect(self, host: str, port: int, address: str | None = None) -> trio.abc.Stream:
        """Connect to an address."""
        try:
            return await super().connect(host, port, address)
        except ConnectionRefusedError:
            self.was_refused.set()
            raise


async def test_a_broker_that_does_not_listen_yet_is_told_once_it_does_and_is_no_fault(
    controllers: Controllers, store: MemoryStore
) -> None:
    network = Refusing()
    await controllers.start_active(**KAFKA, network=network)
    broker = ScriptedBroker(1, free_port())
    async with trio.open_nursery() as nursery:
        with capture_logs() as logs:
            await broker.register(store)
            await network.was_refused.wait()
            await broker.listen(nursery)
            await until(partial(has_orders, broker, kafka.UpdateMetadataRequest))
        assert [line for line in logs if line["log_level"] == "warning"] == []
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("version", range(4))
async def test_leaders_change_isrs_in_every_version(controllers: Controllers, store: MemoryStore, version: int) -> None:
    async with cluster(controllers, store, 1, 2) as (service, _), asking(service) as connection:
        led = await create_topic(service, 2)
        asked = proposal(service, led, (led.leader,), version)
        answer = await connection.send(asked, kafka.AlterPartitionResponse, version)
        [topic] = answer.topics
        [row] = topic.partitions
        assert (answer.error_code, row.error_code, row.isr, row.partition_epoch) == (0, 0, (led.leader,), 1)
        [znode] = await store.read([paths.partition_state(TP)])
        assert znode is not None
        assert formats.decode_partition_state(TP, znode.data, 1).isr == (led.leader,)


@pytest.mark.parametrize("version", range(4))
async def test_a_controlled_shutdown_moves_leaders_in_every_version(
    controllers: Controllers, store: MemoryStore, version: int
) -> None:
    async with cluster(controllers, store, 1, 2) as (service, _), asking(service) as connection:
        led = await create_topic(service, 2)
        asked = kafka.ControlledShutdownRequest(led.leader, epoch_of(service, led.leader) if version >= 2 else -1)
        answer = await connection.send(asked, kafka.ControlledShutdownResponse, version)
        assert (answer.error_code, answer.remaining_partitions) == (0, ())
        assert service.office is not None
        assert service.office.context.leadership[TP].leader == 3 - led.leader


async def test_brokers_are_given_ids_for_producers(controllers: Controllers, store: MemoryStore) -> None:
    async with cluster(controllers, store, 1) as (service, _), asking(service) as connection:
        asked = kafka.AllocateProducerIdsRequest(1, epoch_of(service, 1))
        starts = [(await connection.send(asked, kafka.AllocateProducerIdsResponse, 0)).producer_id_start for _ in "ab"]
        assert starts == [0, 1_000]


async def test_an_address_in_use_is_refused_with_what_to_do(memory: MemoryZooKeeper, controllers: Controllers) -> None:
    service = await controllers.start(**KAFKA)
    assert service.node is not None
    [at] = service.node.listeners
    config = ControllerConfig(1002, kafka=True, listeners=f"PLAINTEXT://{at.host}:{at.port}")
    with pytest.RaisesGroup(
        pytest.RaisesExc(CannotListen, match=f"PLAINTEXT://{HOST}:{at.port} .*in use.*: name another .*--listeners"),
        flatten_subgroups=True,
    ):
        await run(config, open_store=memory.session)


async def test_a_standby_refuses_all_of_them(controllers: Controllers) -> None:
    await controllers.start_active(**KAFKA)
    standby = await controllers.start(1002, **KAFKA)
    await until(lambda: standby.readiness().is_ready)
    async with asking(standby) as connection:
        shutdown = await connection.send(kafka.ControlledShutdownRequest(1, 1), kafka.ControlledShutdownResponse, 3)
        ids = await connection.send(kafka.AllocateProducerIdsRequest(1, 1), kafka.AllocateProducerIdsResponse, 0)
        isr = await connection.send(kafka.AlterPartitionRequest(1, 1), kafka.AlterPartitionResponse, 3)
    assert {shutdown.error_code, ids.error_code, isr.error_code} == {ErrorCode.NOT_CONTROLLER}


async def test_leaders_wait_for_a_controller_that_does_not_know_all_topics_yet(
    controllers: Controllers, store: MemoryStore
) -> None:
    async with cluster(controllers, store, 1, 2) as (service, _), asking(service) as connection:
        led = await create_topic(service, 2)
        asked = proposal(service, led, (led.leader,), 3)
        assert service.office is not None
        service.office.is_loaded = False
        answer = await connection.send(asked, kafka.AlterPartitionResponse, 3)
        assert (answer.error_code, answer.topics) == (ErrorCode.NOT_CONTROLLER, ())


async def test_who_may_not_act_for_the_cluster_is_refused_and_named_once(controllers: Controllers) -> None:
    denied = {Operation.CLUSTER_ACTION}
    service = await controllers.start_active(**KAFKA, authorizer=lambda _, operation, __: operation not in denied)
    asked = kafka.ControlledShutdownRequest(1, 1)
    codes: list[int] = []
    with capture_logs() as logs:
        async with asking(service) as connection:
            for change in (denied.copy, denied.copy, denied.clear, lambda: denied.add(Operation.CLUSTER_ACTION)):
                change()
                codes.append((await connection.send(asked, kafka.ControlledShutdownResponse, 3)).error_code)
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert codes == [refused, refused, ErrorCode.BROKER_NOT_AVAILABLE, refused]
    reason = "client 'broker-1' needs ClusterAction on the cluster: ask who runs the cluster"
    lines = [line for line in logs if line["event"] == "a broker's request is refused"]
    assert [(line["api"], line["reason"]) for line in lines] == [("ControlledShutdown", reason)] * 2
