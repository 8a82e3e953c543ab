"""OffsetFetchRequest in versions 0-10."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BOOL, INT32, STRING, UUID, At, Entity, Message, parse_versions


class OffsetFetchRequestTopic(Entity, frozen=True):
    name: Annotated[str, STRING, At("0-7")] = ""
    partition_indexes: Annotated[tuple[int, ...], INT32, At("0-7")] = ()


class OffsetFetchRequestTopics(Entity, frozen=True):
    name: Annotated[str, STRING, At("8-9", ignorable=True)] = ""
    topic_id: Annotated[str, UUID, At("10+", ignorable=True)] = ""
    partition_indexes: Annotated[tuple[int, ...], INT32, At("8+")] = ()


class OffsetFetchRequestGroup(Entity, frozen=True):
    group_id: Annotated[str, STRING, At("8+")] = ""
    member_id: Annotated[str | None, STRING, At("9+", nullable="9+", ignorable=True)] = None
    member_epoch: Annotated[int, INT32, At("9+", ignorable=True)] = -1
    topics: Annotated[tuple[OffsetFetchRequestTopics, ...] | None, At("8+", nullable="8+")] = ()


class OffsetFetchRequest(Message, frozen=True):
    api_key = 9
    versions = parse_versions("0-10")
    flexible = parse_versions("6+")

    group_id: Annotated[str, STRING, At("0-7")] = ""
    topics: Annotated[tuple[OffsetFetchRequestTopic, ...] | None, At("0-7", nullable="2-7")] = ()
    groups: Annotated[tuple[OffsetFetchRequestGroup, ...], At("8+")] = ()
    require_stable: Annotated[bool, BOOL, At("7+")] = False
