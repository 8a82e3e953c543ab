"""The log directories of Kafka's brokers: in our form, and as the progress of moves."""

from __future__ import annotations

import pytest
import trio

from controller.admin.broker_log_dirs import BrokerLogDirs
from klamm import AdminClient, KafkaAdmin, open_admin
from tests.kafka.scripted_broker import ScriptedBroker
from tests.kafka.test_kafka_node import KAFKA, TP, create_topic
from tests.kit.service import Controllers, until
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.log_dirs import describe_log_dirs, told_log_dirs
from transport.kafka.messages.describe_log_dirs_request import DescribableLogDirTopic
from transport.kafka.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from transport.kafka.volume import ToldLogDir, Volume
from transport.messages import UNKNOWN, DescribeLogDirsRequest, LogDir, LogDirReplica, ReassignablePartition
from transport.metadata import TopicPartition
from transport.store.memory import MemoryZooKeeper

DISK = Volume(100, 40)


def told(size: int) -> kafka.DescribeLogDirsResponse:
    """Return what a broker tells of a log of some size, which is also on its way to another directory."""
    logs = DescribeLogDirsPartition(0, size, 2), DescribeLogDirsPartition(0, 1, 9, is_future_key=True)
    failed = DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, "/failed")
    return kafka.DescribeLogDirsResponse(
        results=(DescribeLogDirsResult(0, "/data", (DescribeLogDirsTopic(TP.topic, logs),), 100, 40), failed)
    )


def test_requests_are_grouped_by_topic() -> None:
    assert describe_log_dirs(DescribeLogDirsRequest()) == kafka.DescribeLogDirsRequest(topics=None)
    asked = describe_log_dirs(DescribeLogDirsRequest((TP, TopicPartition("paid", 1), TopicPartition(TP.topic, 7))))
    assert asked.topics == (DescribableLogDirTopic(TP.topic, (0, 7)), DescribableLogDirTopic("paid", (1,)))


def test_a_log_is_told_of_once_and_a_failed_directory_with_its_error() -> None:
    moving = LogDirReplica(TP.topic, "", 0, 1, UNKNOWN, 9)
    assert told_log_dirs(told(5)) == (
        ToldLogDir(
            LogDir("/data", ErrorCode.NONE, (LogDirReplica(TP.topic, "", 0, 5, UNKNOWN, 2),), 100, 40), DISK, (moving,)
        ),
        ToldLogDir(LogDir("/failed", ErrorCode.KAFKA_STORAGE_ERROR, ())),
    )


def test_a_refusal_says_what_is_needed() -> None:
    refused = kafka.DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(ApiError, match="our principal needs Describe on the cluster"):
        told_log_dirs(refused)


async def test_a_move_between_kafkas_brokers_has_progress(controllers: Controllers, memory: MemoryZooKeeper) -> None:
    service = await controllers.start_active(**KAFKA)
    async with memory.session() as store, trio.open_nursery() as nursery:
        for broker_id, size in ((1, 800), (2, 200)):
            broker = ScriptedBroker(broker_id, answers={kafka.DescribeLogDirsRequest: told(size)})
            await broker.listen(nursery)
            await broker.register(store)
        await until(lambda: service.office is not None and len(service.office.context.brokers) == 2)
        led = await create_topic(service, 1)
        async with open_admin(bootstrap=[(service.endpoint.host, service.endpoint.port)]) as admin:
            await admin.alter_partition_reassignments([ReassignablePartition(*TP, (3 - led.leader,))])
            with trio.fail_after(10):
                while UNKNOWN in (sizes := await copied(admin)):
                    await trio.sleep(0.05)
        assert sizes == {1: (200, 800), 2: (800, 200)}[led.leader]
        nursery.cancel_scope.cancel()


async def test_an_administrator_reads_the_directories_of_kafkas_brokers(
    controllers: Controllers, memory: MemoryZooKeeper
) -> None:
    service = await controllers.start_active(**KAFKA)
    refused = kafka.DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    async with memory.session() as store, trio.open_nursery() as nursery:
        for broker_id, answer in ((1, told(800)), (2, refused)):
            broker = ScriptedBroker(broker_id, answers={kafka.DescribeLogDirsRequest: answer})
            await broker.listen(nursery)
            await broker.register(store)
        await until(lambda: service.office is not None and len(service.office.context.brokers) == 2)
        async with open_admin(bootstrap=[(service.endpoint.host, service.endpoint.port)]) as admin:
            described = await admin.describe_log_dirs([1, 2, 3])
        assert described[1] == BrokerLogDirs.of(told_log_dirs(told(800)))
        assert "our principal needs Describe on the cluster" in described[2].fault
        assert described[3].fault == "broker 3 is not alive"
        nursery.cancel_scope.cancel()


async def copied(admin: AdminClient | KafkaAdmin) -> tuple[int, int]:
    """Return the bytes of the new replica's log, and of the leader's."""
    [move] = (await admin.describe_reassignments()).values()
    [replica] = move.progress
    return replica.log_bytes, replica.leader_bytes
