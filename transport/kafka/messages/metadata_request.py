"""MetadataRequest in versions 0-13."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, STRING, UUID, At, Entity, Message, parse_versions


class MetadataRequestTopic(Entity, frozen=True):
    topic_id: Annotated[str, UUID, At("10+", ignorable=True)] = ""
    name: Annotated[str | None, STRING, At("0+", nullable="10+")] = ""


class MetadataRequest(Message, frozen=True):
    api_key = 3
    versions = parse_versions("0-13")
    flexible = parse_versions("9+")

    topics: Annotated[tuple[MetadataRequestTopic, ...] | None, At("0+", nullable="1+")] = ()
    allow_auto_topic_creation: Annotated[bool, BOOL, At("4+")] = True
    include_cluster_authorized_operations: Annotated[bool, BOOL, At("8-10")] = False
    include_topic_authorized_operations: Annotated[bool, BOOL, At("8+")] = False
