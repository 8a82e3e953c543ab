"""DeleteTopicsResponse in versions 0-6."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, UUID, At, Entity, Message, parse_versions


class DeletableTopicResult(Entity, frozen=True):
    name: Annotated[str | None, STRING, At("0+", nullable="6+")] = ""
    topic_id: Annotated[str, UUID, At("6+", ignorable=True)] = ""
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("5+", nullable="5+", ignorable=True)] = None


class DeleteTopicsResponse(Message, frozen=True):
    api_key = 20
    versions = parse_versions("0-6")
    flexible = parse_versions("4+")

    throttle_time_ms: Annotated[int, INT32, At("1+", ignorable=True)] = 0
    responses: Annotated[tuple[DeletableTopicResult, ...], At("0+")] = ()
