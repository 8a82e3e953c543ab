"""CreateTopicsRequest in versions 0-7."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT16, INT32, STRING, At, Entity, Message, parse_versions


class CreatableReplicaAssignment(Entity, frozen=True):
    partition_index: Annotated[int, INT32, At("0+")] = 0
    broker_ids: Annotated[tuple[int, ...], INT32, At("0+")] = ()


class CreatableTopicConfig(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    value: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""


class CreatableTopic(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    num_partitions: Annotated[int, INT32, At("0+")] = 0
    replication_factor: Annotated[int, INT16, At("0+")] = 0
    assignments: Annotated[tuple[CreatableReplicaAssignment, ...], At("0+")] = ()
    configs: Annotated[tuple[CreatableTopicConfig, ...], At("0+")] = ()


class CreateTopicsRequest(Message, frozen=True):
    api_key = 19
    versions = parse_versions("0-7")
    flexible = parse_versions("5+")

    topics: Annotated[tuple[CreatableTopic, ...], At("0+")] = ()
    timeout_ms: Annotated[int, INT32, At("0+")] = 60000
    validate_only: Annotated[bool, BOOL, At("1+")] = False
