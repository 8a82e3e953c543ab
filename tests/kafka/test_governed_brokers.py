"""Commands at a controller of ours that governs Kafka's brokers, which tell and take their settings themselves."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from tests.cli.shell import Shell, run_klamm
from tests.kafka.scripted_broker import HOST, ScriptedBroker
from tests.kafka.test_kafka_node import KAFKA
from tests.kit.service import Controllers, until
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.describe_configs_response import DescribeConfigsResourceResult, DescribeConfigsResult
from transport.kafka.messages.incremental_alter_configs_response import AlterConfigsResourceResponse
from transport.kafka.messages.metadata_response import MetadataResponseBroker
from transport.store.memory import MemoryZooKeeper

RETENTION, LEAST = "retention.ms", "min.insync.replicas"
ORDERS = ("--entity-type", "topics", "--entity-name", "orders")
TOPIC = 2


def settings(*configs: tuple[str, str, int]) -> kafka.DescribeConfigsResponse:
    """Return the settings of a topic, each with its value and the number of its source."""
    told = tuple(DescribeConfigsResourceResult(name, value, config_source=source) for name, value, source in configs)
    return kafka.DescribeConfigsResponse(results=(DescribeConfigsResult(0, None, TOPIC, "orders", told),))


@asynccontextmanager
async def governed(controllers: Controllers, memory: MemoryZooKeeper) -> AsyncIterator[tuple[Shell, ScriptedBroker]]:
    """Run a broker of Kafka's under a controller of ours, and give what runs commands at the controller."""
    service = await controllers.start_active(**KAFKA)
    broker = ScriptedBroker(1)
    async with memory.session() as store, trio.open_nursery() as nursery:
        await broker.listen(nursery)
        node = MetadataResponseBroker(1, HOST, broker.port)
        done = kafka.IncrementalAlterConfigsResponse(
            responses=(AlterConfigsResourceResponse(0, None, TOPIC, "orders"),)
        )
        broker.answers = {
            kafka.MetadataRequest: kafka.MetadataResponse(brokers=(node,), controller_id=1),
            kafka.DescribeConfigsRequest: settings((RETENTION, "5", 1), (LEAST, "2", 4)),
            kafka.IncrementalAlterConfigsRequest: done,
        }
        await broker.register(store)
        await until(lambda: service.office is not None and len(service.office.context.brokers) == 1)
        yield Shell(f"{service.endpoint.host}:{service.endpoint.port}"), broker
        nursery.cancel_scope.cancel()


async def test_the_brokers_tell_the_settings_in_effect(controllers: Controllers, memory: MemoryZooKeeper) -> None:
    async with governed(controllers, memory) as (shell, _):
        told = json.loads(await shell("config", "describe", *ORDERS, "-o", "json"))
    assert told == [
        {"name": LEAST, "value": "2", "source": "STATIC_BROKER_CONFIG"},
        {"name": RETENTION, "value": "5", "source": "DYNAMIC_TOPIC_CONFIG"},
    ]


async def test_a_topic_that_there_is_not_is_named(controllers: Controllers, memory: MemoryZooKeeper) -> None:
    unknown = DescribeConfigsResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, TOPIC, "orders")
    async with governed(controllers, memory) as (shell, broker):
        answer = kafka.DescribeConfigsResponse(results=(unknown,))
        broker.answers = {**broker.answers, kafka.DescribeConfigsRequest: answer}
        said = await shell("config", "describe", *ORDERS, fails=True)
    assert said == "Error: there is no topic orders: see `klamm topic list`\n"


async def test_the_brokers_take_settings_that_only_they_know(controllers: Controllers, memory: MemoryZooKeeper) -> None:
    async with governed(controllers, memory) as (shell, broker):
        text = await shell("config", "alter", *ORDERS, "--add-config", f"{RETENTION}=7")
        assert text == "altered the settings of topic orders\n"
        [asked] = broker.told(kafka.IncrementalAlterConfigsRequest)
    [resource] = asked.resources
    assert [(one.name, one.value) for one in resource.configs] == [(RETENTION, "7")]


@pytest.mark.parametrize("least", ["1", "2"])
async def test_a_new_topic_is_compared_with_the_brokers_default(
    controllers: Controllers, memory: MemoryZooKeeper, least: str
) -> None:
    async with governed(controllers, memory) as (shell, broker):
        broker.answers = {**broker.answers, kafka.DescribeConfigsRequest: settings((LEAST, least, 4))}
        done = await run_klamm("topic", "create", "orders", "--bootstrap-server", shell.bootstrap)
    assert done.stdout == b"created topic orders\n"
    assert ("no producer with acks=all can write to orders" in done.stderr.decode()) is (least == "2")


async def test_records_are_for_clients_of_kafka(controllers: Controllers, memory: MemoryZooKeeper) -> None:
    async with governed(controllers, memory) as (shell, _):
        await shell("topic", "create", "orders")
        said = await shell("produce", "orders", "--timeout", "1", stdin=b"x\n", fails=True)
    text = "the brokers are Apache Kafka's: this command is for Klamm's brokers, use a client of Kafka's"
    assert said == f"Error: {text}\n"
