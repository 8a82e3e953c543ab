"""DeleteTopicsRequest in versions 0-6."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT32, STRING, UUID, At, Entity, Message, parse_versions


class DeleteTopicState(Entity, frozen=True):
    name: Annotated[str | None, STRING, At("6+", nullable="6+")] = None
    topic_id: Annotated[str, UUID, At("6+")] = ""


class DeleteTopicsRequest(Message, frozen=True):
    api_key = 20
    versions = parse_versions("0-6")
    flexible = parse_versions("4+")

    topics: Annotated[tuple[DeleteTopicState, ...], At("6+")] = ()
    topic_names: Annotated[tuple[str, ...], STRING, At("0-5", ignorable=True)] = ()
    timeout_ms: Annotated[int, INT32, At("0+")] = 0
