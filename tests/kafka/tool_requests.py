"""What clients may ask the controller that no tool does: unusual requests, several wrongs in one, and each version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import fields

from tests.kafka.tool_sides import Answer, Side
from transport.kafka import messages as kafka
from transport.kafka.apis import KAFKA_APIS
from transport.kafka.client import KafkaConnection
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.messages.alter_partition_reassignments_request import ReassignablePartition, ReassignableTopic
from transport.kafka.messages.alter_user_scram_credentials_request import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from transport.kafka.messages.create_partitions_request import CreatePartitionsAssignment, CreatePartitionsTopic
from transport.kafka.messages.create_topics_request import (
    CreatableReplicaAssignment as Replicas,
    CreatableTopic as New,
    CreatableTopicConfig as Setting,
)
from transport.kafka.messages.delete_topics_request import DeleteTopicState as Gone
from transport.kafka.messages.elect_leaders_request import TopicPartitions
from transport.kafka.messages.list_partition_reassignments_request import ListPartitionReassignmentsTopics as Listed
from transport.kafka.messages.update_features_request import FeatureUpdateKey as Feature
from transport.kafka.schema import Message
from transport.network import TcpNetwork

MS: Final = 10_000
UNKNOWN_ID: Final = "AAAAAAAAAAAAAAAAAAAAAg"
PLACED: Final = (Replicas(0, (1, 2)), Replicas(1, (2, 3)))


def create(*topics: New, timeout_ms: int = MS, validate_only: bool = False) -> Message:
    return kafka.CreateTopicsRequest(topics, timeout_ms, validate_only)


def grow(
    name: str, count: int, *replicas: tuple[int, ...], timeout_ms: int = MS, validate_only: bool = False
) -> Message:
    placed = tuple(map(CreatePartitionsAssignment, replicas)) or None
    return kafka.CreatePartitionsRequest((CreatePartitionsTopic(name, count, placed),), timeout_ms, validate_only)


def elect(*partitions: tuple[str, tuple[int, ...]], kind: int = 0) -> Message:
    named = tuple(TopicPartitions(*each) for each in partitions)
    return kafka.ElectLeadersRequest(election_type=kind, topic_partitions=named, timeout_ms=MS)


def move(topic: str, partition: int, replicas: tuple[int, ...] | None) -> Message:
    moved = ReassignableTopic(topic, (ReassignablePartition(partition, replicas),))
    return kafka.AlterPartitionReassignmentsRequest(MS, topics=(moved,))


def delete(*topics: Gone, timeout_ms: int = MS) -> Message:
    return kafka.DeleteTopicsRequest(topics, timeout_ms=timeout_ms)


def users(*deleted: ScramCredentialDeletion, upserted: Iterable[ScramCredentialUpsertion] = ()) -> Message:
    return kafka.AlterUserScramCredentialsRequest(deleted, tuple(upserted))


def credential(user: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(user, mechanism, iterations, b"salt", b"p" * 32)


TOPICS: Final = (
    create(New("r1", -1, -1, PLACED)),
    create(New("r1", 1, 1), New("r2", 1, 1), New("a b", 1, 1)),
    create(New("d", 1, 1), New("d", 2, 1), New("r3", 1, 1)),
    create(New("x", 1, 1, PLACED)),
    create(New("x", -1, 1, PLACED)),
    create(New("x", -1, -1, (Replicas(0, (1,)), Replicas(1, (1, 2))))),
    create(New("x", -1, -1, (Replicas(0, (1, 1)), Replicas(1, (1, 2))))),
    create(New("x", -1, -1, (Replicas(1, (1,)), Replicas(2, (2,))))),
    create(New("empty", -1, -1, (Replicas(0, ()),))),
    create(New("x", 1, 1, (), (Setting("retention.ms", None),))),
    create(New("x", 1, 1, (), (Setting("retention.ms", None), Setting("foo", None)))),
    create(New("r5", 1, 1, (), (Setting("retention.ms", "5"), Setting("retention.ms", "6")))),
    create(New("x", 0, 1)),
    create(New("x", -3, 1)),
    create(New("x", 1, 0)),
    create(New("x", 1, 9)),
    create(New("", 1, 1)),
    create(New("..", 1, 1)),
    create(New("x" * 250, 1, 1)),
    create(New("__cluster_metadata", 1, 1), New("__cluster_metadata", 1, 1)),
    create(New("r4", 1, 1), New("r1", 1, 1), timeout_ms=0),
    create(),
)
VALIDATED: Final = (
    create(New("x", 2, 2), New("r1", 1, 1), validate_only=True),
    create(New("x", -1, -1), validate_only=True),
    create(New("x", 2, 9), validate_only=True),
)
VALIDATED_IN: Final = 4
"""The last version of the answer without settings: ours has those of topics that exist."""

PARTITIONS: Final = (
    grow("r1", 2),
    grow("r1", 1),
    grow("r1", 0),
    grow("r1", -1),
    grow("nosuch", 3),
    grow("r1", 3, (1, 9)),
    grow("r1", 4, (1, 2)),
    grow("r1", 3, ()),
    grow("r1", 3, (1, 1)),
    grow("r1", 4, (1,), (1, 2, 3)),
    grow("r1", 3, validate_only=True),
    grow("r1", 3, (3, 1)),
    grow("r1", 4, (3, 2), timeout_ms=0),
)
ELECTIONS: Final = (
    elect(("r1", (0, 9)), ("nosuch", (0,))),
    elect(("r1", (0, 0))),
    elect(),
    elect(("r1", (0,)), kind=1),
    elect(("r1", (0,)), kind=5),
)
MOVES: Final = (
    move("r1", 0, ()),
    move("r1", 0, (1, 1)),
    move("r1", 0, (1, -2)),
    move("r1", 0, (1, 8, 9)),
    move("r1", 77, (1, 2)),
    move("nosuch", 0, (1, 2)),
    move("r1", 0, None),
    move("nosuch", 0, None),
    move("r1", 0, (1, 2)),
    kafka.AlterPartitionReassignmentsRequest(MS),
    kafka.ListPartitionReassignmentsRequest(MS, None),
    kafka.ListPartitionReassignmentsRequest(MS, (Listed("r1", (0, 77)), Listed("nosuch", (0,)))),
)
OTHERS: Final = (
    kafka.UpdateFeaturesRequest(feature_updates=(Feature("foo", 1), Feature("", 1))),
    kafka.UpdateFeaturesRequest(feature_updates=(Feature("foo", 0, upgrade_type=2), Feature("group.version", 1))),
    kafka.UpdateFeaturesRequest(feature_updates=(Feature("foo", 0), Feature("bar", 1, upgrade_type=9))),
    kafka.UpdateFeaturesRequest(),
    users(upserted=[credential("bob")]),
    users(
        ScramCredentialDeletion("nobody", 1),
        ScramCredentialDeletion("b5", 9),
        upserted=[credential(""), credential("b1", 7), credential("b2", 1, 10), credential("b3", 2, 99_999)],
    ),
    users(ScramCredentialDeletion("t", 1), upserted=[credential("t")]),
    users(ScramCredentialDeletion("bob", 1), ScramCredentialDeletion("bob", 2)),
    users(ScramCredentialDeletion("bob", 1)),
    users(),
)
DELETIONS: Final = (
    delete(Gone("r2"), Gone("nosuch"), Gone(None, UNKNOWN_ID)),
    delete(Gone("r3", UNKNOWN_ID)),
    delete(Gone("r3"), Gone("r3")),
    delete(Gone("r4"), timeout_ms=0),
    delete(),
)


async def requests(side: Side) -> None:
    """Ask the controller itself."""
    network = TcpNetwork()
    host, port = side.clients[1].split(":")
    async with open_kafka_connection(network, host, int(port), client_id="tests") as broker:
        version = broker.version_of(kafka.MetadataRequest)
        told = await broker.send(kafka.MetadataRequest(topics=()), kafka.MetadataResponse, version)
    [node] = [node for node in told.brokers if node.node_id == told.controller_id]
    async with open_kafka_connection(network, node.host, node.port, client_id="tests") as controller:
        for asked in (*TOPICS, *PARTITIONS, *ELECTIONS, *MOVES, *OTHERS, *DELETIONS):
            await ask(side, controller, asked)
        for asked in VALIDATED:
            await ask(side, controller, asked, VALIDATED_IN)
        await in_each_version(side, controller)


async def in_each_version(side: Side, controller: KafkaConnection) -> None:
    """Ask for the same in all versions of a request."""
    for version in range(4):
        await ask(side, controller, create(New(f"v{version}", 1, 1)), version)
    for version in range(3):
        await ask(side, controller, grow("v0", version + 2), version)
        await ask(side, controller, elect(("v0", (0, 9)), ("nosuch", (0,))), version)
    for version in range(1, 6):
        names = (f"v{version - 1}", "nosuch")
        await ask(side, controller, kafka.DeleteTopicsRequest(topic_names=names, timeout_ms=MS), version)


async def ask(side: Side, controller: KafkaConnection, request: Message, version: int | None = None) -> None:
    """Ask the controller, and take its answer."""
    used = controller.version_of(type(request)) if version is None else version
    answer = await controller.send(request, KAFKA_APIS[request.api_key].response, used, timeout=60)
    lines = [line for name, value in fields_of(answer).items() for line in rows(name, value)]
    side.answers.append(Answer(f"v{used} {request}", 0, tuple(lines)))


def rows(name: str, value: object) -> list[str]:
    """Return a field of an answer, one line for each row, in order."""
    if not isinstance(value, tuple):
        return [f"{name}: {value}"]
    return sorted(f"{name}: {shown(row)}" for row in value)


def fields_of(message: Message) -> dict[str, object]:
    """Return the fields of a message of Kafka's."""
    return {field.name: getattr(message, field.name) for field in fields(message)}


def shown(row: Message) -> dict[str, object]:
    """Return a row without the ids of topics, and with the rows in it in order."""
    values = fields_of(row)
    values |= {"topic_id": "ID"} if values.get("topic_id") else {}
    return {name: rows("", value) if isinstance(value, tuple) else value for name, value in values.items()}
