"""The admin clients that Python programs use work on real brokers whose controller is ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import aiokafka.admin
import kafka
import kafka.admin
import kafka.errors
import pytest
import trio
from confluent_kafka import ElectionType, KafkaException, TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.kafka import jars
from tests.kafka.real_cluster import RealCluster, Starting, real_cluster, until

pytestmark = pytest.mark.soak
SECONDS = 30
EXISTS = "Topic 'orders' already exists."
TOO_WIDE = "Replication factor: 3 larger than available brokers: 2."


@pytest.fixture
async def shown(zookeeper: str, tmp_path: Path, kafka_jars: Path) -> AsyncIterator[RealCluster]:
    """Give the test two brokers under a controller that clients see."""
    assert kafka_jars.name == jars.RELEASE
    starting = Starting(are_shown=True)
    async with real_cluster(f"{zookeeper}/{tmp_path.name}", tmp_path, broker_ids=(1, 2), starting=starting) as running:
        yield running


async def test_confluent_kafka(shown: RealCluster) -> None:
    await trio.to_thread.run_sync(
        by_confluent_kafka, AdminClient({"bootstrap.servers": ",".join(shown.clients.values())})
    )
    await until_deleted(shown)


async def until_deleted(cluster: RealCluster) -> None:
    """Wait until the controller has forgotten the topic, which is when all replicas are gone."""

    async def is_gone() -> bool:
        return await cluster.states("orders") == []

    await until(is_gone)


def by_confluent_kafka(admin: AdminClient) -> None:
    """Administer topics, leaders, settings and users with librdkafka."""
    topics = [
        NewTopic("orders", 1, 2),
        NewTopic("placed", 1, replica_assignment=[[2, 1]], config={"retention.ms": "5000"}),
    ]
    assert outcomes(admin.create_topics(topics)) == {"orders": "", "placed": ""}
    wrong = [NewTopic("orders", 1, 1), NewTopic("wide", 1, 3), NewTopic("odd", 1, 1, config={"foo": "1"})]
    assert outcomes(admin.create_topics(wrong)) == {
        "orders": EXISTS, "wide": TOO_WIDE, "odd": "Unknown topic config name: foo"
    }  # fmt: skip
    assert outcomes(admin.create_topics([NewTopic("thought", 1, 1)], validate_only=True)) == {"thought": ""}
    grown = [NewPartitions("orders", 2), NewPartitions("placed", 2, [[1, 2]]), NewPartitions("nosuch", 2)]
    assert outcomes(admin.create_partitions(grown)) == {
        "orders": "", "placed": "", "nosuch": "The topic 'nosuch' does not exist."
    }  # fmt: skip
    known = admin.list_topics(timeout=SECONDS).topics
    assert {name: len(topic.partitions) for name, topic in known.items()} == {"orders": 2, "placed": 2}
    assert known["placed"].partitions[1].replicas == [1, 2]
    partitions = [ConfluentPartition("orders", 0), ConfluentPartition("nosuch", 0)]
    elected = admin.elect_leaders(ElectionType.PREFERRED, partitions).result()
    assert {partition.topic: error.code() for partition, error in elected.items()} == {"orders": 84, "nosuch": 3}
    resource = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[
        ConfigEntry("retention.ms", "7000", incremental_operation=AlterConfigOpType.SET)
    ])  # fmt: skip
    assert list(outcomes(admin.incremental_alter_configs([resource])).values()) == [""]
    [told] = admin.describe_configs([ConfigResource(ResourceType.TOPIC, "orders")]).values()
    assert told.result()["retention.ms"].value == "7000"
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    changes = [
        UserScramCredentialUpsertion("ann", credential, b"secret"),
        UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_512),
    ]
    altered = outcomes(admin.alter_user_scram_credentials(changes))
    assert altered == {"ann": "", "bob": "Attempt to delete a user credential that does not exist"}
    users = admin.describe_user_scram_credentials()
    assert isinstance(users, Future)
    assert set(users.result()) == {"ann"}
    nodes = admin.describe_cluster(request_timeout=SECONDS).result()
    assert ({node.id for node in nodes.nodes}, nodes.controller.id) == ({1, 2, 1001}, 1001)
    deleted = outcomes(admin.delete_topics(["orders", "placed", "nosuch"]))
    assert deleted == {"orders": "", "placed": "", "nosuch": "Broker: Unknown topic or partition"}
    assert admin.list_topics(timeout=SECONDS).topics == {}


def outcomes(asked: Mapping[Any, Any]) -> dict[str, str]:
    """Return the errors by what they are about; of what has succeeded the empty text."""
    return {str(name): _outcome(future) for name, future in asked.items()}


def _outcome(future: Any) -> str:
    try:
        future.result()
    except KafkaException as error:
        told = error.args[0].str()
        assert isinstance(told, str)
        return told
    return ""


async def test_kafka_python(shown: RealCluster) -> None:
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=list(shown.clients.values()))
    try:
        await trio.to_thread.run_sync(by_kafka_python, admin)
    finally:
        await trio.to_thread.run_sync(admin.close)
    await until_deleted(shown)


def by_kafka_python(admin: Any) -> None:
    """Administer topics, leaders, moves, users and settings with kafka-python."""
    of, errors = kafka.admin, kafka.errors
    first = kafka.TopicPartition("orders", 0)
    [created] = admin.create_topics([of.NewTopic("orders", 1, 2)])["topics"]
    assert (created["error_code"], created["num_partitions"], created["replication_factor"]) == (0, 1, 2)
    with pytest.raises(errors.TopicAlreadyExistsError, match=EXISTS):
        admin.create_topics([of.NewTopic("orders", 1, 2)])
    with pytest.raises(errors.InvalidReplicationFactorError, match=TOO_WIDE):
        admin.create_topics([of.NewTopic("wide", 1, 3)])
    admin.create_partitions({"orders": of.NewPartitions(2)})
    with pytest.raises(errors.InvalidPartitionsError, match="Topic already has 2 partitions"):
        admin.create_partitions({"orders": of.NewPartitions(2)})
    [described] = admin.describe_topics(["orders"])
    assert {row["partition_index"] for row in described["partitions"]} == {0, 1}
    admin.elect_leaders(0, [first])
    assert admin.list_partition_reassignments() == {}
    assert admin.alter_partition_reassignments({first: [2]}) == {first: None}
    assert set(admin.alter_partition_reassignments({kafka.TopicPartition("nosuch", 0): [1]}).values()) != {None}
    cluster = admin.describe_cluster()
    assert ({broker["broker_id"] for broker in cluster["brokers"]}, cluster["controller_id"]) == ({1, 2, 1001}, 1001)
    upsertion = of.UserScramCredentialUpsertion("ann", of.ScramMechanism.SCRAM_SHA_256, b"secret")
    admin.alter_user_scram_credentials([upsertion])
    assert set(admin.describe_user_scram_credentials()) == {"ann"}
    assert {row["broker"] for row in admin.describe_log_dirs()} == {1, 2, 1001}
    assert admin.list_groups() == []
    [deleted] = admin.delete_topics(["orders"])["topics"]
    assert deleted["error_code"] == 0
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        admin.delete_topics(["orders"])
    assert "orders" not in admin.list_topics()


async def test_aiokafka(shown: RealCluster) -> None:
    addresses = ",".join(shown.clients.values())
    await trio.to_thread.run_sync(asyncio.run, by_aiokafka(addresses))
    await until_deleted(shown)


async def by_aiokafka(servers: str) -> None:
    """Administer topics with aiokafka."""
    of = aiokafka.admin
    admin = of.AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        created = await admin.create_topics([of.NewTopic("orders", 1, 2), of.NewTopic("wide", 1, 3)])
        assert sorted(created.topic_errors) == [("orders", 0, None), ("wide", 38, TOO_WIDE)]
        again = await admin.create_topics([of.NewTopic("orders", 1, 2)])
        assert again.topic_errors == [("orders", 36, EXISTS)]
        grown = await admin.create_partitions({"orders": of.NewPartitions(2)})
        assert grown.topic_errors == [("orders", 0, None)]
        [described] = await admin.describe_topics(["orders"])
        assert {row["partition"] for row in described["partitions"]} == {0, 1}
        cluster = await admin.describe_cluster()
        nodes = {broker["node_id"] for broker in cluster["brokers"]}
        assert (nodes, cluster["controller_id"]) == ({1, 2, 1001}, 1001)
        assert (await admin.delete_topics(["orders"])).topic_error_codes == [("orders", 0)]
        assert await admin.list_topics() == []
    finally:
        await admin.close()
