"""CreateTopicsResponse in versions 0-7."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT8, INT16, INT32, STRING, UUID, At, Entity, Message, parse_versions


class CreatableTopicConfigs(Entity, frozen=True):
    name: Annotated[str, STRING, At("5+")] = ""
    value: Annotated[str | None, STRING, At("5+", nullable="5+")] = ""
    read_only: Annotated[bool, BOOL, At("5+")] = False
    config_source: Annotated[int, INT8, At("5+", ignorable=True)] = -1
    is_sensitive: Annotated[bool, BOOL, At("5+")] = False


class CreatableTopicResult(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    topic_id: Annotated[str, UUID, At("7+", ignorable=True)] = ""
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("1+", nullable="0+", ignorable=True)] = ""
    topic_config_error_code: Annotated[int, INT16, At("5+", tag=0, tagged="5+", ignorable=True)] = 0
    num_partitions: Annotated[int, INT32, At("5+", ignorable=True)] = -1
    replication_factor: Annotated[int, INT16, At("5+", ignorable=True)] = -1
    configs: Annotated[tuple[CreatableTopicConfigs, ...] | None, At("5+", nullable="5+", ignorable=True)] = ()


class CreateTopicsResponse(Message, frozen=True):
    api_key = 19
    versions = parse_versions("0-7")
    flexible = parse_versions("5+")

    throttle_time_ms: Annotated[int, INT32, At("2+", ignorable=True)] = 0
    topics: Annotated[tuple[CreatableTopicResult, ...], At("0+")] = ()
