"""Kafka's administrators ask a controller of ours as one of Kafka's; it answers when brokers know the change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from controller.channels import topic_settings
from controller.node import kafka_admin
from controller.node.service import ControllerService
from tests.kafka.scripted_broker import ScriptedBroker, scripted_brokers
from tests.kafka.test_kafka_node import KAFKA, asking, has_orders
from tests.kit.service import Controllers, until
from transport.acls import Operation
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.client import KafkaConnection
from transport.kafka.messages.alter_configs_request import AlterConfigsResource as PlainResource
from transport.kafka.messages.alter_partition_reassignments_request import ReassignablePartition, ReassignableTopic
from transport.kafka.messages.create_partitions_request import CreatePartitionsTopic
from transport.kafka.messages.create_topics_request import CreatableReplicaAssignment, CreatableTopic
from transport.kafka.messages.delete_topics_request import DeleteTopicState
from transport.kafka.messages.describe_configs_request import DescribeConfigsResource
from transport.kafka.messages.describe_configs_response import DescribeConfigsResourceResult, DescribeConfigsResult
from transport.kafka.messages.elect_leaders_request import TopicPartitions
from transport.kafka.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource
from transport.kafka.messages.list_partition_reassignments_request import ListPartitionReassignmentsTopics
from transport.kafka.messages.update_metadata_request import UpdateMetadataPartitionState
from transport.kafka.schema import Message
from transport.kafka.server import KafkaRequest
from transport.metadata import LEADER_DURING_DELETE
from transport.store.memory import MemoryStore, MemoryZooKeeper

PATIENCE_MS = 10_000
TOPIC = 2
BROKER = 4
DELETE = 1


@pytest.fixture
async def store(memory: MemoryZooKeeper) -> AsyncIterator[MemoryStore]:
    """Give the test the session of its brokers."""
    async with memory.session() as session:
        yield session


@asynccontextmanager
async def governed(
    controllers: Controllers,
    store: MemoryStore,
    answers: Mapping[type[Message], Message] | None = None,
    **settings: Any,
) -> AsyncIterator[tuple[ControllerService, list[ScriptedBroker], KafkaConnection]]:
    """Run a controller and two brokers, and connect to the controller as a client."""
    service = await controllers.start_active(**KAFKA, **settings)
    async with scripted_brokers(store, 1, 2, answers=answers) as brokers:
        await until(lambda: all(has_orders(broker, kafka.UpdateMetadataRequest) for broker in brokers))
        async with asking(service) as client:
            yield service, brokers, client


def told_of(broker: ScriptedBroker, topic: str) -> list[UpdateMetadataPartitionState]:
    """Return what a broker has been told of the partitions of a topic, in the order of its arrival."""
    return [
        state
        for order in broker.told(kafka.UpdateMetadataRequest)
        for row in order.topic_states
        if row.topic_name == topic
        for state in row.partition_states
    ]


async def create(client: KafkaConnection, *topics: CreatableTopic, version: int = 7) -> kafka.CreateTopicsResponse:
    request = kafka.CreateTopicsRequest(topics, PATIENCE_MS)
    return await client.send(request, kafka.CreateTopicsResponse, version)


@pytest.mark.parametrize("version", range(8))
async def test_topics_are_created_in_every_version(controllers: Controllers, store: MemoryStore, version: int) -> None:
    async with governed(controllers, store) as (service, brokers, client):
        topics = CreatableTopic("orders", 2, 1), CreatableTopic("a b", 1, 1), CreatableTopic("wide", 1, 3)
        answer = await create(client, *topics, version=version)
        # The brokers know the topic, and its leaders, when the client does.
        for broker in brokers:
            assert {state.partition_index for state in told_of(broker, "orders")} == {0, 1}
        assert [(row.name, row.error_code) for row in answer.topics] == [("orders", 0), ("a b", 17), ("wide", 38)]
        if version >= 1:
            assert answer.topics[2].error_message == "Replication factor: 3 larger than available brokers: 2."
        if version >= 5:
            assert (answer.topics[0].num_partitions, answer.topics[0].replication_factor) == (2, 1)
        if version >= 7:
            assert service.office is not None
            assert answer.topics[0].topic_id == service.office.context.topic_id("orders")
        again = await create(client, CreatableTopic("orders", 2, 1), version=version)
        assert again.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


async def test_a_topic_that_is_only_validated_is_not_created(controllers: Controllers, store: MemoryStore) -> None:
    async with governed(controllers, store) as (service, _, client):
        request = kafka.CreateTopicsRequest((CreatableTopic("orders", 2, 1),), PATIENCE_MS, validate_only=True)
        [row] = (await client.send(request, kafka.CreateTopicsResponse, 7)).topics
        assert (row.error_code, row.error_message, row.num_partitions, row.replication_factor) == (0, None, 2, 1)
        grow = kafka.CreatePartitionsRequest((CreatePartitionsTopic("orders", 3, None),), PATIENCE_MS)
        [grown] = (await client.send(grow, kafka.CreatePartitionsResponse, 3)).results
        assert grown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert service.office is not None
        assert "orders" not in service.office.context.topics


async def test_what_has_been_created_is_told_to_those_who_may_read_settings(
    controllers: Controllers, store: MemoryStore
) -> None:
    retention = DescribeConfigsResourceResult("retention.ms", "5", config_source=1)
    result = DescribeConfigsResult(resource_name="orders", configs=(retention,))
    answers: dict[type[Message], Message] = {
        kafka.DescribeConfigsRequest: kafka.DescribeConfigsResponse(results=(result,))
    }
    denied: set[Operation] = set()
    running = governed(controllers, store, answers, authorizer=lambda _, operation, __: operation not in denied)
    async with running as (service, _, client):
        [told] = (await create(client, CreatableTopic("orders", 2, 1))).topics
        assert [(one.name, one.value, one.config_source) for one in told.configs or ()] == [("retention.ms", "5", 1)]
        denied.add(Operation.DESCRIBE_CONFIGS)
        [hidden] = (await create(client, CreatableTopic("hidden", 2, 1))).topics
        assert (hidden.error_code, hidden.topic_config_error_code, hidden.num_partitions) == (0, 29, -1)
        assert (hidden.topic_id, hidden.configs) == ("", ())
        assert service.office is not None
        assert "hidden" in service.office.context.topics


class MuteBroker(ScriptedBroker):
    """A broker that does not tell the settings of topics."""

    async def _take(self, request: KafkaRequest) -> Any:
        is_about_topic = any(resource.resource_type == TOPIC for resource in getattr(request.message, "resources", ()))
        if is_about_topic:
            await trio.sleep_forever()
        return await super()._take(request)


async def test_a_broker_that_does_not_tell_settings_holds_nobody_up_for_long(
    controllers: Controllers, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_settings, "SECONDS", 0.05)
    monkeypatch.setattr("tests.kafka.scripted_broker.ScriptedBroker", MuteBroker)
    async with governed(controllers, store) as (_, _, client):
        [told] = (await create(client, CreatableTopic("orders", 2, 1))).topics
        assert (told.error_code, told.num_partitions, told.configs) == (0, 2, ())


async def test_a_client_that_does_not_wait_is_told_that_it_has_not_waited(
    controllers: Controllers, store: MemoryStore
) -> None:
    async with governed(controllers, store) as (service, _, client):
        request = kafka.CreateTopicsRequest((CreatableTopic("orders", 2, 1),), 0)
        [row] = (await client.send(request, kafka.CreateTopicsResponse, 7)).topics
        assert (row.error_code, row.error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
        office = service.office
        assert office is not None
        await until(lambda: "orders" in office.context.topics)
        grow = kafka.CreatePartitionsRequest((CreatePartitionsTopic("orders", 3, None),), 0)
        [grown] = (await client.send(grow, kafka.CreatePartitionsResponse, 3)).results
        assert grown.error_code == ErrorCode.REQUEST_TIMED_OUT


class SilentBroker(ScriptedBroker):
    """A broker that does not answer orders about topics."""

    async def _take(self, request: KafkaRequest) -> Any:
        if isinstance(request.message, kafka.UpdateMetadataRequest) and request.message.topic_states:
            await trio.sleep_forever()
        return await super()._take(request)


async def test_a_broker_that_does_not_answer_holds_nobody_up_for_long(
    controllers: Controllers, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_admin, "TELLING_SECONDS", 0.05)
    async with governed(controllers, store) as (service, _, client), trio.open_nursery() as nursery:
        silent = SilentBroker(3)
        await silent.listen(nursery)
        await silent.register(store)
        await until(lambda: has_orders(silent, kafka.UpdateMetadataRequest))
        assert [row.error_code for row in (await create(client, CreatableTopic("orders", 2, 1))).topics] == [0]
        assert service.office is not None
        assert not service.office.channels.have_told({"orders"})
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("version", range(4))
async def test_partitions_are_added_in_every_version(
    controllers: Controllers, store: MemoryStore, version: int
) -> None:
    async with governed(controllers, store) as (_, brokers, client):
        await create(client, CreatableTopic("orders", 2, 1))
        topics = CreatePartitionsTopic("orders", 4, None), CreatePartitionsTopic("absent", 2, None)
        request = kafka.CreatePartitionsRequest(topics, PATIENCE_MS)
        answer = await client.send(request, kafka.CreatePartitionsResponse, version)
        for broker in brokers:
            assert {state.partition_index for state in told_of(broker, "orders")} == {0, 1, 2, 3}
        assert [(row.name, row.error_code, row.error_message) for row in answer.results] == [
            ("orders", 0, None),
            ("absent", 3, "The topic 'absent' does not exist."),
        ]


@pytest.mark.parametrize("version", range(7))
async def test_topics_are_deleted_in_every_version(controllers: Controllers, store: MemoryStore, version: int) -> None:
    async with governed(controllers, store) as (_, brokers, client):
        await create(client, CreatableTopic("orders", 2, 1))
        states = tuple(DeleteTopicState(name) for name in ("orders", "absent"))
        names = {"topics": states} if version >= 6 else {"topic_names": ("orders", "absent")}
        request = kafka.DeleteTopicsRequest(**names, timeout_ms=PATIENCE_MS)
        rows = (await client.send(request, kafka.DeleteTopicsResponse, version)).responses
        assert [(row.name, row.error_code) for row in rows] == [("orders", 0), ("absent", 3)]
        for broker in brokers:
            assert {state.leader for state in told_of(broker, "orders")[-2:]} == {LEADER_DURING_DELETE}


async def test_topics_are_deleted_by_id(controllers: Controllers, store: MemoryStore) -> None:
    async with governed(controllers, store) as (_, _, client):
        [row] = (await create(client, CreatableTopic("orders", 2, 1))).topics
        unknown = "AAAAAAAAAAAAAAAAAAAAAg"
        topics = DeleteTopicState(None, row.topic_id), DeleteTopicState(None, unknown)
        request = kafka.DeleteTopicsRequest(topics, timeout_ms=PATIENCE_MS)
        rows = (await client.send(request, kafka.DeleteTopicsResponse, 6)).responses
        told = [(row.name, row.topic_id, row.error_code) for row in rows]
        assert told == [("orders", topics[0].topic_id, 0), (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID)]
        both = kafka.DeleteTopicsRequest((DeleteTopicState("orders", unknown),), timeout_ms=PATIENCE_MS)
        [row_of_both] = (await client.send(both, kafka.DeleteTopicsResponse, 6)).responses
        assert row_of_both.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(3))
async def test_leaders_are_elected_in_every_version(controllers: Controllers, store: MemoryStore, version: int) -> None:
    async with governed(controllers, store) as (_, _, client):
        await create(client, CreatableTopic("orders", -1, -1, (CreatableReplicaAssignment(0, (1, 2)),)))
        partitions = (TopicPartitions("orders", (0, 7)),)
        request = kafka.ElectLeadersRequest(topic_partitions=partitions, timeout_ms=PATIENCE_MS)
        answer = await client.send(request, kafka.ElectLeadersResponse, version)
        [topic] = answer.replica_election_results
        assert [(row.partition_id, row.error_code) for row in topic.partition_result] == [(0, 84), (7, 3)]


async def test_partitions_are_reassigned_and_that_is_listed_and_cancelled(
    controllers: Controllers, store: MemoryStore
) -> None:
    async with governed(controllers, store) as (_, _, client):
        await create(client, CreatableTopic("orders", -1, -1, (CreatableReplicaAssignment(0, (1,)),)))

        async def alter(replicas: tuple[int, ...] | None) -> tuple[int, str | None]:
            topic = ReassignableTopic("orders", (ReassignablePartition(0, replicas),))
            request = kafka.AlterPartitionReassignmentsRequest(PATIENCE_MS, topics=(topic,))
            answer = await client.send(request, kafka.AlterPartitionReassignmentsResponse, 0)
            [row] = answer.responses[0].partitions
            return row.error_code, row.error_message

        async def listed(*topics: ListPartitionReassignmentsTopics) -> list[tuple[int, ...]]:
            request = kafka.ListPartitionReassignmentsRequest(PATIENCE_MS, topics or None)
            answer = await client.send(request, kafka.ListPartitionReassignmentsResponse, 0)
            return [row.replicas for topic in answer.topics for row in topic.partitions]

        assert await alter(None) == (85, "No partition reassignment is in progress.")
        assert await alter(()) == (39, "Empty replica list specified in partition reassignment.")
        assert await alter((2,)) == (0, None)
        assert await listed() == [(2, 1)]
        assert await listed(ListPartitionReassignmentsTopics("orders", (0,))) == [(2, 1)]
        assert await listed(ListPartitionReassignmentsTopics("orders", (1,))) == []
        assert await alter(None) == (0, None)
        assert await listed() == []


async def test_who_may_not_is_refused_each_topic_or_everything(controllers: Controllers, store: MemoryStore) -> None:
    denied: set[Operation] = set()
    running = governed(controllers, store, authorizer=lambda _, operation, __: operation not in denied)
    async with running as (*_, client):
        await create(client, CreatableTopic("orders", 2, 1))
        denied.update(Operation)
        # That the topic exists is not told either.
        [created] = (await create(client, CreatableTopic("orders", 2, 1))).topics
        assert (created.error_code, created.error_message) == (29, "Authorization failed.")
        more = kafka.CreatePartitionsRequest((CreatePartitionsTopic("orders", 4, None),), PATIENCE_MS)
        [grown] = (await client.send(more, kafka.CreatePartitionsResponse, 3)).results
        assert (grown.error_code, grown.error_message) == (29, "The topic authorization is failed.")
        delete = kafka.DeleteTopicsRequest((DeleteTopicState("orders"),), timeout_ms=PATIENCE_MS)
        assert (await client.send(delete, kafka.DeleteTopicsResponse, 6)).responses[0].error_code == 29
        elect, move = kafka.ElectLeadersRequest(), kafka.AlterPartitionReassignmentsRequest()
        assert (await client.send(elect, kafka.ElectLeadersResponse, 2)).error_code == 31
        assert (await client.send(move, kafka.AlterPartitionReassignmentsResponse, 0)).error_code == 31
        moves = kafka.ListPartitionReassignmentsRequest()
        assert (await client.send(moves, kafka.ListPartitionReassignmentsResponse, 0)).error_code == 31


async def test_a_standby_sends_clients_to_the_controller(controllers: Controllers) -> None:
    await controllers.start_active(**KAFKA)
    standby = await controllers.start(1002, **KAFKA)
    await until(lambda: standby.readiness().is_ready)
    async with asking(standby) as client:
        [created] = (await create(client, CreatableTopic("orders", 2, 1))).topics
        assert (created.error_code, created.error_message) == (41, None)
        move = kafka.AlterPartitionReassignmentsRequest()
        assert (await client.send(move, kafka.AlterPartitionReassignmentsResponse, 0)).error_code == 41


# --- the settings of the controller as a node ----------------------------------------------------------------------


async def test_the_controller_answers_about_its_own_settings_and_a_broker_about_all_others(
    controllers: Controllers, store: MemoryStore
) -> None:
    async with governed(controllers, store) as (_, _, client):
        for version in range(5):
            ours = kafka.DescribeConfigsRequest((DescribeConfigsResource(BROKER, "1001", None),))
            [result] = (await client.send(ours, kafka.DescribeConfigsResponse, version)).results
            assert (result.error_code, result.resource_name, result.configs) == (0, "1001", ())
        theirs = kafka.DescribeConfigsRequest((DescribeConfigsResource(BROKER, "1", None),))
        [result] = (await client.send(theirs, kafka.DescribeConfigsResponse, 4)).results
        assert result.configs[0].name == "inter.broker.protocol.version"


async def alter_own(client: KafkaConnection, name: str, operation: int) -> tuple[int, str | None]:
    configs = (AlterableConfig(name, operation, "1"),)
    request = kafka.IncrementalAlterConfigsRequest((AlterConfigsResource(BROKER, "1001", configs),))
    [row] = (await client.send(request, kafka.IncrementalAlterConfigsResponse, 1)).responses
    assert (row.resource_type, row.resource_name) == (BROKER, "1001")
    return row.error_code, row.error_message


async def test_throttles_are_taken_from_the_controller_as_from_every_node(
    controllers: Controllers, store: MemoryStore
) -> None:
    answers: dict[type[Message], Message] = {
        kafka.IncrementalAlterConfigsRequest: kafka.IncrementalAlterConfigsResponse(),
        kafka.AlterConfigsRequest: kafka.AlterConfigsResponse(),
    }
    denied: set[Operation] = set()
    running = governed(controllers, store, answers, authorizer=lambda _, operation, __: operation not in denied)
    async with running as (*_, client):
        assert await alter_own(client, "leader.replication.throttled.rate", DELETE) == (0, None)
        assert await alter_own(client, "follower.replication.throttled.rate", 0) == (0, None)
        code, text = await alter_own(client, "log.cleaner.threads", 0)
        assert code == ErrorCode.INVALID_REQUEST
        assert text == "node 1001 is the controller, which has no setting log.cleaner.threads: name a broker"
        plain = kafka.AlterConfigsRequest((PlainResource(BROKER, "1001"),))
        [row] = (await client.send(plain, kafka.AlterConfigsResponse, 2)).responses
        assert (row.error_code, row.resource_name) == (0, "1001")
        denied.add(Operation.ALTER_CONFIGS)
        refused = await alter_own(client, "leader.replication.throttled.rate", DELETE)
        assert refused == (31, "Cluster authorization failed.")
