"""StopReplicaRequest in versions 0-4."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT32, INT64, STRING, At, Entity, Message, parse_versions


class StopReplicaPartitionV0(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0")] = ""
    partition_index: Annotated[int, INT32, At("0")] = 0


class StopReplicaTopicV1(Entity, frozen=True):
    name: Annotated[str, STRING, At("1-2")] = ""
    partition_indexes: Annotated[tuple[int, ...], INT32, At("1-2")] = ()


class StopReplicaPartitionState(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("3+")] = 0
    leader_epoch: Annotated[int, INT32, At("3+")] = -1
    delete_partition: Annotated[bool, BOOL, At("3+")] = False


class StopReplicaTopicState(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("3+")] = ""
    partition_states: Annotated[tuple[StopReplicaPartitionState, ...], At("3+")] = ()


class StopReplicaRequest(Message, frozen=True):
    api_key = 5
    versions = parse_versions("0-4")
    flexible = parse_versions("2+")

    controller_id: Annotated[int, INT32, At("0+")] = 0
    is_kraft_controller: Annotated[bool, BOOL, At("4+")] = False
    controller_epoch: Annotated[int, INT32, At("0+")] = 0
    broker_epoch: Annotated[int, INT64, At("1+", ignorable=True)] = -1
    delete_partitions: Annotated[bool, BOOL, At("0-2")] = False
    ungrouped_partitions: Annotated[tuple[StopReplicaPartitionV0, ...], At("0")] = ()
    topics: Annotated[tuple[StopReplicaTopicV1, ...], At("1-2")] = ()
    topic_states: Annotated[tuple[StopReplicaTopicState, ...], At("3+")] = ()
