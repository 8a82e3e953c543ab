"""LeaderAndIsrRequest in versions 0-7."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT8, INT32, INT64, STRING, UUID, At, Entity, Message, parse_versions


class LeaderAndIsrPartitionState(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0-1", ignorable=True)] = ""
    partition_index: Annotated[int, INT32, At("0+")] = 0
    controller_epoch: Annotated[int, INT32, At("0+")] = 0
    leader: Annotated[int, INT32, At("0+")] = 0
    leader_epoch: Annotated[int, INT32, At("0+")] = 0
    isr: Annotated[tuple[int, ...], INT32, At("0+")] = ()
    partition_epoch: Annotated[int, INT32, At("0+")] = 0
    replicas: Annotated[tuple[int, ...], INT32, At("0+")] = ()
    adding_replicas: Annotated[tuple[int, ...], INT32, At("3+", ignorable=True)] = ()
    removing_replicas: Annotated[tuple[int, ...], INT32, At("3+", ignorable=True)] = ()
    is_new: Annotated[bool, BOOL, At("1+", ignorable=True)] = False
    leader_recovery_state: Annotated[int, INT8, At("6+")] = 0


class LeaderAndIsrTopicState(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("2+")] = ""
    topic_id: Annotated[str, UUID, At("5+", ignorable=True)] = ""
    partition_states: Annotated[tuple[LeaderAndIsrPartitionState, ...], At("2+")] = ()


class LeaderAndIsrLiveLeader(Entity, frozen=True):
    broker_id: Annotated[int, INT32, At("0+")] = 0
    host_name: Annotated[str, STRING, At("0+")] = ""
    port: Annotated[int, INT32, At("0+")] = 0


class LeaderAndIsrRequest(Message, frozen=True):
    api_key = 4
    versions = parse_versions("0-7")
    flexible = parse_versions("4+")

    controller_id: Annotated[int, INT32, At("0+")] = 0
    is_kraft_controller: Annotated[bool, BOOL, At("7+")] = False
    controller_epoch: Annotated[int, INT32, At("0+")] = 0
    broker_epoch: Annotated[int, INT64, At("2+", ignorable=True)] = -1
    type: Annotated[int, INT8, At("5+")] = 0
    ungrouped_partition_states: Annotated[tuple[LeaderAndIsrPartitionState, ...], At("0-1")] = ()
    topic_states: Annotated[tuple[LeaderAndIsrTopicState, ...], At("2+")] = ()
    live_leaders: Annotated[tuple[LeaderAndIsrLiveLeader, ...], At("0+")] = ()
