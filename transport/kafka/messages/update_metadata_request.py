"""UpdateMetadataRequest in versions 0-8."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT8, INT16, INT32, INT64, STRING, UUID, At, Entity, Message, parse_versions


class UpdateMetadataPartitionState(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("0-4", ignorable=True)] = ""
    partition_index: Annotated[int, INT32, At("0+")] = 0
    controller_epoch: Annotated[int, INT32, At("0+")] = 0
    leader: Annotated[int, INT32, At("0+")] = 0
    leader_epoch: Annotated[int, INT32, At("0+")] = 0
    isr: Annotated[tuple[int, ...], INT32, At("0+")] = ()
    zk_version: Annotated[int, INT32, At("0+")] = 0
    replicas: Annotated[tuple[int, ...], INT32, At("0+")] = ()
    offline_replicas: Annotated[tuple[int, ...], INT32, At("4+", ignorable=True)] = ()


class UpdateMetadataTopicState(Entity, frozen=True):
    topic_name: Annotated[str, STRING, At("5+")] = ""
    topic_id: Annotated[str, UUID, At("7+", ignorable=True)] = ""
    partition_states: Annotated[tuple[UpdateMetadataPartitionState, ...], At("5+")] = ()


class UpdateMetadataEndpoint(Entity, frozen=True):
    port: Annotated[int, INT32, At("1+")] = 0
    host: Annotated[str, STRING, At("1+")] = ""
    listener: Annotated[str, STRING, At("3+", ignorable=True)] = ""
    security_protocol: Annotated[int, INT16, At("1+")] = 0


class UpdateMetadataBroker(Entity, frozen=True):
    id: Annotated[int, INT32, At("0+")] = 0
    v0_host: Annotated[str, STRING, At("0", ignorable=True)] = ""
    v0_port: Annotated[int, INT32, At("0", ignorable=True)] = 0
    endpoints: Annotated[tuple[UpdateMetadataEndpoint, ...], At("1+", ignorable=True)] = ()
    rack: Annotated[str | None, STRING, At("2+", nullable="0+", ignorable=True)] = ""


class UpdateMetadataRequest(Message, frozen=True):
    api_key = 6
    versions = parse_versions("0-8")
    flexible = parse_versions("6+")

    controller_id: Annotated[int, INT32, At("0+")] = 0
    is_kraft_controller: Annotated[bool, BOOL, At("8+")] = False
    type: Annotated[int, INT8, At("8+", tag=0, tagged="8+")] = 0
    controller_epoch: Annotated[int, INT32, At("0+")] = 0
    broker_epoch: Annotated[int, INT64, At("5+", ignorable=True)] = -1
    ungrouped_partition_states: Annotated[tuple[UpdateMetadataPartitionState, ...], At("0-4")] = ()
    topic_states: Annotated[tuple[UpdateMetadataTopicState, ...], At("5+")] = ()
    live_brokers: Annotated[tuple[UpdateMetadataBroker, ...], At("0+")] = ()
