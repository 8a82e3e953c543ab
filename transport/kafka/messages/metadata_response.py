"""MetadataResponse in versions 0-13."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT16, INT32, STRING, UUID, At, Entity, Message, parse_versions


class MetadataResponseBroker(Entity, frozen=True):
    node_id: Annotated[int, INT32, At("0+")] = 0
    host: Annotated[str, STRING, At("0+")] = ""
    port: Annotated[int, INT32, At("0+")] = 0
    rack: Annotated[str | None, STRING, At("1+", nullable="1+", ignorable=True)] = None


class MetadataResponsePartition(Entity, frozen=True):
    error_code: Annotated[int, INT16, At("0+")] = 0
    partition_index: Annotated[int, INT32, At("0+")] = 0
    leader_id: Annotated[int, INT32, At("0+")] = 0
    leader_epoch: Annotated[int, INT32, At("7+", ignorable=True)] = -1
    replica_nodes: Annotated[tuple[int, ...], INT32, At("0+")] = ()
    isr_nodes: Annotated[tuple[int, ...], INT32, At("0+")] = ()
    offline_replicas: Annotated[tuple[int, ...], INT32, At("5+", ignorable=True)] = ()


class MetadataResponseTopic(Entity, frozen=True):
    error_code: Annotated[int, INT16, At("0+")] = 0
    name: Annotated[str | None, STRING, At("0+", nullable="12+")] = ""
    topic_id: Annotated[str, UUID, At("10+", ignorable=True)] = ""
    is_internal: Annotated[bool, BOOL, At("1+", ignorable=True)] = False
    partitions: Annotated[tuple[MetadataResponsePartition, ...], At("0+")] = ()
    topic_authorized_operations: Annotated[int, INT32, At("8+")] = -2147483648


class MetadataResponse(Message, frozen=True):
    api_key = 3
    versions = parse_versions("0-13")
    flexible = parse_versions("9+")

    throttle_time_ms: Annotated[int, INT32, At("3+", ignorable=True)] = 0
    brokers: Annotated[tuple[MetadataResponseBroker, ...], At("0+")] = ()
    cluster_id: Annotated[str | None, STRING, At("2+", nullable="2+", ignorable=True)] = None
    controller_id: Annotated[int, INT32, At("1+", ignorable=True)] = -1
    topics: Annotated[tuple[MetadataResponseTopic, ...], At("0+")] = ()
    cluster_authorized_operations: Annotated[int, INT32, At("8-10")] = -2147483648
    error_code: Annotated[int, INT16, At("13+", ignorable=True)] = 0
