"""Answers of one node to clients about the cluster. Clients like librdkafka ask any node that they know."""

from __future__ import annotations

from msgspec.structs import replace

from transport.kafka import messages as kafka
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.messages.metadata_request import MetadataRequestTopic
from transport.network import Network


async def told_metadata(network: Network, address: str, *names: str) -> kafka.MetadataResponse:
    """Return what the node at an address tells of some topics, or of all, with its lists in order."""
    host, _, port = address.rpartition(":")
    topics = tuple(MetadataRequestTopic(name=name) for name in names) or None
    request = kafka.MetadataRequest(topics, allow_auto_topic_creation=False)
    async with open_kafka_connection(network, host, int(port), client_id="client") as client:
        version = client.version_of(kafka.MetadataRequest)
        return in_order(await client.send(request, kafka.MetadataResponse, version))


def in_order(answer: kafka.MetadataResponse) -> kafka.MetadataResponse:
    """Return an answer with its lists in order."""
    topics = [
        replace(topic, partitions=tuple(sorted(topic.partitions, key=lambda one: one.partition_index)))
        for topic in sorted(answer.topics, key=lambda topic: (topic.name or "", topic.topic_id))
    ]
    brokers = sorted(answer.brokers, key=lambda one: one.node_id)
    return replace(answer, topics=tuple(topics), brokers=tuple(brokers))
