"""Scripted nodes that hide from a client what its permissions do not let it see, as Kafka's brokers do."""

from __future__ import annotations

from collections.abc import Collection

from tests.kafka.scripted_nodes import Answer, ScriptedNodes
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from transport.kafka.messages.metadata_response import MetadataResponseTopic
from transport.kafka.schema import Message

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def denying(cluster: ScriptedNodes, visible: Collection[str] | None, hidden: Collection[str] = ()) -> None:
    """Let all nodes hide topics as brokers do: all but the `visible` ones, if they are given, and the `hidden`."""

    def may(name: str) -> bool:
        return name not in hidden and (visible is None or name in visible)

    def answer(request: kafka.MetadataRequest) -> kafka.MetadataResponse:
        found = cluster.metadata(request)
        if request.topics is None:
            return kafka.MetadataResponse(
                brokers=found.brokers,
                controller_id=found.controller_id,
                topics=tuple(topic for topic in found.topics if may(topic.name or "")),
            )
        named = [topic.name or "" for topic in request.topics]
        there = {topic.name: topic for topic in cluster.topics}
        absent = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        topics = [
            there.get(name, MetadataResponseTopic(absent, name)) if may(name) else MetadataResponseTopic(DENIED, name)
            for name in named
        ]
        return kafka.MetadataResponse(brokers=found.brokers, controller_id=found.controller_id, topics=tuple(topics))

    for node in cluster.nodes.values():
        node.answers[kafka.MetadataRequest] = answer


def logs_of(*topics: str) -> kafka.DescribeLogDirsResponse:
    """Return a directory with two logs of each topic."""
    logs = tuple(DescribeLogDirsPartition(number, 10, 0) for number in (0, 1))
    held = tuple(DescribeLogDirsTopic(topic, logs) for topic in topics)
    return kafka.DescribeLogDirsResponse(results=(DescribeLogDirsResult(0, "/a", held, 1_000, 500),))


NO_CLUSTER: dict[type[Message], Answer] = {
    kafka.DescribeLogDirsRequest: kafka.DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    kafka.ListPartitionReassignmentsRequest: kafka.ListPartitionReassignmentsResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Request Request(processor=1) ..."
    ),
}
