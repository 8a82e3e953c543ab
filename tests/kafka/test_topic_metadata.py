"""Answers to Metadata have the form and the errors of Kafka's brokers."""

from __future__ import annotations

from typing import Final

import pytest

from transport.acls import CLUSTER, Operation, Resource, ResourceType
from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.authorized_operations import authorized_operations
from transport.kafka.messages.metadata_request import MetadataRequestTopic as Asked
from transport.kafka.messages.metadata_response import MetadataResponseTopic
from transport.kafka.orders import Node
from transport.kafka.topic_metadata import (
    Nodes,
    Wanted,
    hidden_topic,
    missing_topic,
    refused,
    topic_metadata,
    wanted_topics,
)
from transport.messages import PartitionState
from transport.metadata import Listener

ID, OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
BOTH: Final = (Listener("IN", "a", 1), Listener("OUT", "b", 2))
NODES: Final = Nodes("OUT", (Node(1, BOTH, "r1"), Node(2, BOTH), Node(3, BOTH[:1]), Node(1001, BOTH)))
"""Node 3 has no address for clients, and node 4 is not alive."""


def test_clients_see_the_nodes_with_an_address_at_their_listener() -> None:
    found = {(node.node_id, node.host, node.port, node.rack) for node in NODES.brokers()}
    assert found == {(1, "b", 2, "r1"), (2, "b", 2, None), (1001, "b", 2, None)}
    assert NODES.live == {1, 2, 3, 1001}


@pytest.mark.parametrize(
    ("version", "leader", "replicas", "isr", "expected"),
    [
        (12, 1, (1, 2), (2, 1), (0, 1, (1, 2), (2, 1))),
        (12, 1, (1, 4), (1,), (0, 1, (1, 4), (1,))),
        (12, -1, (4,), (4,), (5, -1, (4,), (4,))),
        (12, 4, (4,), (4,), (5, -1, (4,), (4,))),
        (12, 3, (3, 1), (3,), (72, -1, (3, 1), (3,))),
        (6, 3, (3, 1), (3,), (72, -1, (3, 1), (3,))),
        (5, 3, (3, 1), (3,), (5, -1, (3, 1), (3,))),
        (1, 1, (1, 4), (1,), (0, 1, (1, 4), (1,))),
        (0, 1, (1, 2), (1,), (0, 1, (1, 2), (1,))),
        (0, 1, (1, 4), (1,), (9, 1, (1,), (1,))),
        (0, 1, (1, 2), (1, 3), (9, 1, (1, 2), (1,))),
        (0, 4, (4, 1), (4,), (5, -1, (1,), ())),
    ],
)
def test_a_partition_is_told_in_each_version(
    version: int,
    leader: int,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    expected: tuple[int, int, tuple[int, ...], tuple[int, ...]],
) -> None:
    state = PartitionState("orders", ID, 7, 1, leader, 9, isr, 3, replicas, offline_replicas=(4,))
    told = topic_metadata("orders", ID, [state], NODES, version, 5)
    assert (told.error_code, told.name, told.topic_id, told.is_internal) == (0, "orders", ID, False)
    [partition] = told.partitions
    assert (partition.error_code, partition.leader_id, partition.replica_nodes, partition.isr_nodes) == expected
    assert (partition.partition_index, partition.leader_epoch, partition.offline_replicas) == (7, 9, (4,))


@pytest.mark.parametrize(
    ("version", "topics", "expected"),
    [
        (0, (), Wanted(are_all=True)),
        (1, (), Wanted()),
        (1, None, Wanted(are_all=True)),
        (4, (Asked("", "a"), Asked("", "b"), Asked("", "a")), Wanted(("a", "b"))),
        (12, (Asked(ID, None), Asked(OTHER_ID, None)), Wanted(("a",), ids={"a": ID}, unknown_ids=(OTHER_ID,))),
        (12, (Asked(ID, "x"), Asked("", "b")), Wanted(("a",), ids={"a": ID})),
        (12, (Asked("", "a"),), Wanted(("a",))),
        (12, (Asked("", None),), ErrorCode.UNKNOWN_SERVER_ERROR),
        (11, (Asked("", None),), ErrorCode.INVALID_REQUEST),
        (10, (Asked(ID, "a"),), ErrorCode.INVALID_REQUEST),
    ],
)
def test_topics_are_asked_for_by_name_or_by_id(
    version: int, topics: tuple[Asked, ...] | None, expected: Wanted | ErrorCode
) -> None:
    found: Wanted | ErrorCode
    try:
        found = wanted_topics(kafka.MetadataRequest(topics), version, {ID: "a"}.get)
    except ApiError as refusal:
        found = refusal.code
    assert found == expected


def test_a_refused_request_repeats_what_was_asked_for() -> None:
    told = refused(kafka.MetadataRequest((Asked(ID, None), Asked("", "a"))), ErrorCode.INVALID_REQUEST)
    assert told.topics == (MetadataResponseTopic(42, "", ID), MetadataResponseTopic(42, "a"))
    assert told.brokers == ()


def test_what_is_not_there_or_not_to_be_seen_is_told_apart() -> None:
    assert (missing_topic("nosuch", 5).error_code, missing_topic("no such", 5).error_code) == (3, 17)
    assert missing_topic("__consumer_offsets", 5).is_internal
    assert missing_topic("nosuch", 5).topic_authorized_operations == 5
    assert hidden_topic("secret", None) == MetadataResponseTopic(29, "secret")
    assert hidden_topic("secret", ID) == MetadataResponseTopic(29, None, ID)


def test_operations_are_bits_by_kafkas_numbers() -> None:
    topic = Resource(ResourceType.TOPIC, "orders")
    assert authorized_operations(topic, lambda *_: True) == 0b1101_1111_1000
    assert authorized_operations(CLUSTER, lambda *_: True) == 0b1_1111_1010_0000
    assert authorized_operations(topic, lambda operation, _: operation is Operation.READ) == 0b1000
    assert authorized_operations(CLUSTER, lambda operation, _: operation is Operation.READ) == 0
