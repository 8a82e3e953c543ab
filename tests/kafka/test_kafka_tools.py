"""Kafka's own tools and admin clients work on real brokers whose controller is ours."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.kafka import jars
from tests.kafka.kafka_tools import KafkaTools
from tests.kafka.real_cluster import RealCluster, Starting, real_cluster


@pytest.fixture
async def shown(zookeeper: str, tmp_path: Path, kafka_jars: Path) -> AsyncIterator[RealCluster]:
    """Give the test two brokers under a controller that clients see."""
    if not jars.has_tools(jars.RELEASE):
        pytest.skip(f"no tools of Kafka to test with: python -m tests.kafka.jars {jars.RELEASE}")
    starting = Starting(are_shown=True)
    address = f"{zookeeper}/tools-{tmp_path.name}"
    async with real_cluster(address, tmp_path, broker_ids=(1, 2), starting=starting) as running:
        assert kafka_jars == running.brokers[1].jars
        yield running


async def test_tools_and_clients_ask_the_controller(shown: RealCluster, tmp_path: Path, kafka_jars: Path) -> None:
    tools = KafkaTools(kafka_jars, ",".join(shown.clients.values()))
    create = partial(tools.run, "kafka-topics", "--create", "--topic", "orders")
    assert await create("--replica-assignment", "1,1") == (0, "Created topic orders.")
    code, told = await create()
    assert (code, told.splitlines()[0]) == (1, "Error while executing topic command : Topic 'orders' already exists.")
    await trio.to_thread.run_sync(ask_as_a_program, tools.bootstrap)
    wanted = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2]}]}
    file = tmp_path / "move.json"
    file.write_text(json.dumps(wanted))
    reassign = partial(tools.run, "kafka-reassign-partitions", "--reassignment-json-file", str(file))
    code, told = await reassign("--execute", "--throttle", "1000000")
    assert (code, told.splitlines()[-1]) == (0, "Successfully started partition reassignment for orders-0")
    await shown.until_moved("orders")
    code, told = await reassign("--verify")
    assert code == 0
    assert "Reassignment of partition orders-0 is completed." in told
    assert "Clearing broker-level throttles on brokers 1,2,1001" in told
    elect = await tools.run("kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")
    assert elect == (0, "")
    assert {tuple(state.replicas) for state in await shown.states("orders")} == {(2,), (1,)}


def ask_as_a_program(bootstrap: str) -> None:
    """Create, extend and delete topics with librdkafka, and be refused."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("program", 1, 2)])["program"].result()
    assert "program" in admin.list_topics(timeout=30).topics
    admin.create_partitions([NewPartitions("program", 3)])["program"].result()
    assert len(admin.list_topics("program", timeout=30).topics["program"].partitions) == 3
    with pytest.raises(KafkaException, match="Replication factor: 3 larger than available brokers: 2"):
        admin.create_topics([NewTopic("wide", 1, 3)])["wide"].result()
    admin.delete_topics(["program"])["program"].result()
    assert "program" not in admin.list_topics(timeout=30).topics
