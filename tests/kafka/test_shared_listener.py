"""Brokers whose only listener is for clients too: these are told of the controller, and may ask it what they like."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

import klamm
from controller.node.service import ControllerService
from tests.kafka.real_brokers import real_broker
from tests.kafka.real_cluster import until
from tests.kafka.traffic import read, topics, write
from transport.errors import ErrorCode
from transport.messages import NewTopic
from transport.zookeeper_server import find_java

RECORDS: Final = 1_000
SECONDS: Final = 60


async def java(jars: Path, tool: str, *words: str, stdin: bytes = b"") -> str:
    """Run a tool of Kafka's, and return its output."""
    command = [find_java(), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", tool, *words]
    with trio.fail_after(SECONDS):
        done = await trio.run_process(command, stdin=stdin, capture_stdout=True, capture_stderr=True, check=False)
    assert done.returncode == 0, (done.stdout[-2_000:], done.stderr[-2_000:])
    return done.stdout.decode()


def ask(at: str) -> tuple[set[str], int, int]:
    """Return the groups, the number of nodes of the cluster, and the number of settings of a topic."""
    admin = AdminClient({"bootstrap.servers": at})
    groups = admin.list_consumer_groups(request_timeout=SECONDS).result()
    assert groups.errors == []
    nodes = admin.describe_cluster(request_timeout=SECONDS).result().nodes
    [configs] = admin.describe_configs([ConfigResource(ResourceType.TOPIC, "orders")]).values()
    return {group.group_id for group in groups.valid}, len(nodes), len(configs.result())


@pytest.mark.soak
async def test_clients_find_the_cluster_through_the_controller(
    kafka_jars: Path, zookeeper: str, tmp_path: Path
) -> None:
    address = f"{zookeeper}/shared-{tmp_path.name}"
    config = klamm.ControllerConfig(1001, zookeeper_connect=address, kafka=True)
    async with trio.open_nursery() as nursery:
        service: ControllerService = await nursery.start(klamm.run, config)
        async with real_broker(kafka_jars, address, 1, tmp_path) as broker:
            await until(partial(knows, service))
            assert service.node is not None
            [listener] = service.node.listeners
            at = f"{listener.host}:{listener.port}"
            await create(service)
            written = await write(at, "orders", RECORDS)
            assert (len(written.values), written.errors) == (RECORDS, [])
            assert sorted(await read(at, "orders", "readers")) == sorted(written.values)
            assert await topics(at) == {"orders", "__consumer_offsets"}
            groups, nodes, settings = await trio.to_thread.run_sync(ask, at)
            assert (groups, nodes) == ({"readers"}, 2)
            assert settings > 20
            await by_tools(kafka_jars, at)
            sys.stdout.write(f"{RECORDS} records written and read, {settings} settings of a topic\n")
            assert "ERROR" not in broker.log.read_text()
        nursery.cancel_scope.cancel()


async def by_tools(jars: Path, at: str) -> None:
    """Write and describe with Kafka's own clients, and read what they wrote."""
    server = ("--bootstrap-server", at)
    await java(jars, "kafka.tools.ConsoleProducer", *server, "--topic", "orders", stdin=b"one\ntwo\n")
    values = await read(at, "orders", "others")
    assert len(values) == RECORDS + 2
    assert {b"one", b"two"} <= set(values)
    about = ("--describe", "--all", "--entity-type", "topics", "--entity-name", "orders")
    assert "min.insync.replicas=1" in await java(jars, "kafka.admin.ConfigCommand", *server, *about)


async def knows(service: ControllerService) -> bool:
    """Return whether the controller has a connection to the broker."""
    await trio.lowlevel.checkpoint()
    return service.office is not None and bool(service.office.channels.connected())


async def create(service: ControllerService) -> None:
    """Create a topic."""
    async with klamm.open_admin(bootstrap=[(service.endpoint.host, service.endpoint.port)]) as admin:
        [created] = (await admin.create_topics([NewTopic("orders", 3, 1)])).topics
        assert created.error is ErrorCode.NONE
