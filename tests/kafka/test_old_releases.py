"""Brokers of Apache Kafka's old releases, as far as a script can play them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from controller.node.service import ControllerService
from tests.kafka.scripted_broker import ScriptedBroker, protocol, scripted_brokers
from tests.kit.service import Controllers, until
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.messages.alter_partition_request import PartitionData, TopicData
from transport.kafka.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from transport.kafka.registration import decode_registration, encode_controller
from transport.kafka.schema import Message, parse_versions
from transport.metadata import Listener, ReplicaAssignment, TopicPartition
from transport.network import TcpNetwork
from transport.store import formats, paths
from transport.store.memory import MemoryStore, MemoryZooKeeper
from transport.store.protocol import Create, Delete, ensure_paths

US = 1001
KAFKA: dict[str, Any] = {"kafka": True, "inter_broker_listener_name": "internal"}
NOT_PERMITTED = kafka.DescribeConfigsResponse(
    results=(DescribeConfigsResult(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),)
)
SINCE_3_0: dict[type[Message], Message] = {kafka.AllocateProducerIdsRequest: kafka.AllocateProducerIdsResponse()}


@pytest.fixture
async def store(memory: MemoryZooKeeper) -> AsyncIterator[MemoryStore]:
    """Give the test the session of its brokers."""
    async with memory.session() as session:
        yield session


async def test_a_broker_of_an_old_release_finds_the_controller_among_the_brokers(
    controllers: Controllers, memory: MemoryZooKeeper, store: MemoryStore
) -> None:
    service = await controllers.start_active(**KAFKA)
    assert service.node is not None
    async with scripted_brokers(store, 1):
        await until(lambda: memory.tree.read(paths.broker(US)) is not None)
        [znode] = await store.read([paths.broker(US)])
        assert znode is not None
        assert decode_registration(US, znode.data, 1, "INTERNAL").listeners == service.node.listeners
        await store.multi([Delete(paths.broker(1))])
        await until(lambda: memory.tree.read(paths.broker(US)) is None)


async def test_a_controller_is_no_broker_for_later_releases(
    controllers: Controllers, memory: MemoryZooKeeper, store: MemoryStore
) -> None:
    service = await controllers.start_active(**KAFKA)
    async with scripted_brokers(store, 1, answers=SINCE_3_0):
        await until(lambda: service.office is not None and not service.office.context.kafka.is_registered)
    assert memory.tree.read(paths.broker(US)) is None


async def test_a_controller_starts_although_an_earlier_process_of_its_id_is_still_registered(
    controllers: Controllers, store: MemoryStore
) -> None:
    await ensure_paths(store, [paths.BROKER_IDS])
    left = encode_controller([Listener("INTERNAL", "127.0.0.1", 1)])
    await store.multi([Create(paths.broker(US), left, ephemeral=True)])
    await controllers.start_active(**KAFKA)


async def test_the_last_block_of_ids_is_left_to_brokers_that_would_not_start_if_it_were_empty(
    controllers: Controllers, memory: MemoryZooKeeper
) -> None:
    await controllers.start_active(**KAFKA)
    assert memory.tree.read(paths.CONFIG_CHANGES) is not None
    assert memory.tree.read(paths.PRODUCER_IDS) is None


@pytest.mark.parametrize(
    ("version", "configured", "expected"),
    [
        ("3.9-IV0", None, {7}),
        ("2.8", None, {7}),
        ("2.8-IV0", None, {4}),
        ("2.6", "2.8", {4}),
        ("", None, {4}),
        ("", "2.8", {7}),
    ],
)
async def test_topics_have_ids_where_the_protocol_of_the_brokers_has_them(
    controllers: Controllers, store: MemoryStore, version: str, configured: str | None, expected: set[int]
) -> None:
    await controllers.start_active(**KAFKA, inter_broker_protocol_version=configured)
    said = protocol(version) if version else NOT_PERMITTED
    async with scripted_brokers(store, 1, answers={kafka.DescribeConfigsRequest: said}) as [broker]:
        await write_topic(store, TP.topic, 1)
        await until(lambda: told_epoch(broker) == 0)
        assert {
            version for order, version in zip(broker.orders, broker.versions, strict=True) if is_led(order)
        } == expected


async def test_a_broker_tells_the_settings_of_its_file_that_controllers_have(
    controllers: Controllers, store: MemoryStore
) -> None:
    told = (
        DescribeConfigsResourceResult("auto.leader.rebalance.enable", "false", config_source=4),
        DescribeConfigsResourceResult("delete.topic.enable", "true", config_source=5),
        # The default of all brokers, which the controller reads from the store.
        DescribeConfigsResourceResult("unclean.leader.election.enable", "true", config_source=3),
        DescribeConfigsResourceResult("num.network.threads", "3", config_source=4),
    )
    said = kafka.DescribeConfigsResponse(results=(DescribeConfigsResult(configs=told),))
    service = await controllers.start_active(**KAFKA)
    with capture_logs() as logs:
        async with scripted_brokers(store, 1, answers={kafka.DescribeConfigsRequest: said}):
            await until(lambda: service.office is not None and 1 in service.office.context.kafka.releases)
            assert service.office is not None
            release = service.office.context.kafka.releases[1]
    assert release.of_controllers == (("auto.leader.rebalance.enable", "false"), ("delete.topic.enable", "true"))
    [line] = [line for line in logs if line["event"].startswith("a broker has other settings")]
    assert line["settings"] == ["auto.leader.rebalance.enable=false"]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (DescribeConfigsResourceResult("min.insync.replicas", "2", config_source=4), 2),
        (DescribeConfigsResourceResult("min.insync.replicas", "1", config_source=5), 1),
        (
            DescribeConfigsResourceResult(
                "min.insync.replicas",
                "4",
                config_source=2,
                synonyms=(
                    DescribeConfigsSynonym("min.insync.replicas", "4", 2),
                    DescribeConfigsSynonym("min.insync.replicas", "3", 3),
                    DescribeConfigsSynonym("min.insync.replicas", "2", 4),
                    DescribeConfigsSynonym("min.insync.replicas", "1", 5),
                ),
            ),
            2,
        ),
        (DescribeConfigsResourceResult("min.insync.replicas", "4", config_source=3), None),
        (DescribeConfigsResourceResult("num.network.threads", "4", config_source=4), None),
    ],
    ids=["file", "default", "at run time", "at run time alone", "other"],
)
async def test_a_broker_tells_the_min_isr_of_its_file(
    controllers: Controllers, store: MemoryStore, told: DescribeConfigsResourceResult, expected: int | None
) -> None:
    said = kafka.DescribeConfigsResponse(results=(DescribeConfigsResult(configs=(told,)),))
    service = await controllers.start_active(**KAFKA)
    async with scripted_brokers(store, 1, answers={kafka.DescribeConfigsRequest: said}):
        await until(lambda: service.office is not None and 1 in service.office.context.kafka.releases)
        assert service.office is not None
        assert service.office.context.kafka.releases[1].min_isr == expected


def is_led(order: object) -> bool:
    return isinstance(order, kafka.LeaderAndIsrRequest)


async def test_one_broker_without_topic_ids_is_enough_to_have_none(
    controllers: Controllers, store: MemoryStore
) -> None:
    await controllers.start_active(**KAFKA)
    old: dict[type[Message], Message] = {kafka.DescribeConfigsRequest: protocol("2.7")}
    async with scripted_brokers(store, 1) as [first], scripted_brokers(store, 2, answers=old) as [second]:
        await until(lambda: bool(first.orders and second.orders))
        await write_topic(store, TP.topic, 1, 2)
        await until(lambda: told_epoch(first) == 0)
        assert first.versions[first.orders.index(first.told(kafka.LeaderAndIsrRequest)[-1])] == 4


async def test_a_broker_that_does_not_say_is_named_with_what_to_do(
    controllers: Controllers, store: MemoryStore
) -> None:
    await controllers.start_active(**KAFKA)
    with capture_logs() as logs:
        async with scripted_brokers(store, 1, answers={kafka.DescribeConfigsRequest: NOT_PERMITTED}) as [broker]:
            await until(lambda: bool(broker.orders))
            await until(lambda: any(line.get("setting") == "inter.broker.protocol.version" for line in logs))


class AlterIsrRequest(kafka.AlterPartitionRequest, frozen=True):
    """AlterPartition as releases from 2.7 to 3.1 offer it."""

    versions = parse_versions("0")


AS_2_8: dict[type[Message], Message] = {AlterIsrRequest: kafka.AlterPartitionResponse()}
TP = TopicPartition("orders", 0)


@pytest.mark.parametrize(("isr", "error"), [((1,), ErrorCode.NONE), ((1, 2, 3), ErrorCode.OPERATION_NOT_ATTEMPTED)])
async def test_a_leader_gets_its_answer_and_a_higher_epoch(
    controllers: Controllers, store: MemoryStore, isr: tuple[int, ...], error: ErrorCode
) -> None:
    service = await controllers.start_active(**KAFKA)
    async with scripted_brokers(store, 1, 2, answers=AS_2_8) as brokers:
        await write_topic(store, TP.topic, 1, 2)
        await until(lambda: all(told_epoch(broker) == 0 for broker in brokers))
        answer = await propose(service, isr)
        assert [row.error_code for topic in answer.topics for row in topic.partitions] == [error]
        await until(lambda: all(told_epoch(broker) == 1 for broker in brokers))


async def write_topic(store: MemoryStore, name: str, *replicas: int) -> None:
    """Create a topic with one partition."""
    topic = formats.TopicZnode({0: ReplicaAssignment(replicas)})
    await store.multi([Create(paths.topic(name), formats.encode_topic(topic))])


def told_epoch(broker: ScriptedBroker) -> int:
    """Return the leader epoch of the last order that a broker got."""
    orders = broker.told(kafka.LeaderAndIsrRequest)
    return orders[-1].topic_states[0].partition_states[0].leader_epoch if orders else -1


async def propose(service: ControllerService, isr: tuple[int, ...]) -> kafka.AlterPartitionResponse:
    """Let broker 1 propose an ISR in version 0."""
    assert service.node is not None
    assert service.office is not None
    [at] = service.node.listeners
    now = service.office.context.leadership[TP]
    row = PartitionData(TP.partition, now.leader_epoch, isr, partition_epoch=now.partition_epoch)
    epoch = service.office.context.brokers[1].epoch
    asked = kafka.AlterPartitionRequest(1, epoch, (TopicData(TP.topic, partitions=(row,)),))
    async with open_kafka_connection(TcpNetwork(), at.host, at.port, client_id="broker-1") as connection:
        return await connection.send(asked, kafka.AlterPartitionResponse, 0)
