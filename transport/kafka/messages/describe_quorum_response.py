"""DescribeQuorumResponse in versions 0-2."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, INT64, STRING, UINT16, UUID, At, Entity, Message, parse_versions


class ReplicaState(Entity, frozen=True):
    replica_id: Annotated[int, INT32, At("0+")] = 0
    replica_directory_id: Annotated[str, UUID, At("2+")] = ""
    log_end_offset: Annotated[int, INT64, At("0+")] = 0
    last_fetch_timestamp: Annotated[int, INT64, At("1+", ignorable=True)] = -1
    last_caught_up_timestamp: Annotated[int, INT64, At("1+", ignorable=True)] = -1


class PartitionData(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("2+", nullable="2+", ignorable=True)] = ""
    leader_id: Annotated[int, INT32, At("0+")] = 0
    leader_epoch: Annotated[int, INT32, At("0+")] = 0
    high_watermark: Annotated[int, INT64, At("0+")] = 0
    current_voters: Annotated[tuple[ReplicaState, ...], At("0+")] = ()
    observers: Annotated[tuple[ReplicaState, ...], At("0+")] = ()


class TopicData(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0+")] = ""
    partitions: Annotated[tuple[PartitionData, ...], At("0+")] = ()


class Listener(Entity, frozen=True):
    name: Annotated[str, STRING, At("2+")] = ""
    host: Annotated[str, STRING, At("2+")] = ""
    port: Annotated[int, UINT16, At("2+")] = 0


class Node(Entity, frozen=True):
    node_id: Annotated[int, INT32, At("2+")] = 0
    listeners: Annotated[tuple[Listener, ...], At("2+")] = ()


class DescribeQuorumResponse(Message, frozen=True):
    api_key = 55
    versions = parse_versions("0-2")
    flexible = parse_versions("0+")

    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("2+", nullable="2+", ignorable=True)] = ""
    topics: Annotated[tuple[TopicData, ...], At("0+")] = ()
    nodes: Annotated[tuple[Node, ...], At("2+")] = ()
