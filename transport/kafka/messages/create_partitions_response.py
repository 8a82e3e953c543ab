"""CreatePartitionsResponse in versions 0-3."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, At, Entity, Message, parse_versions


class CreatePartitionsTopicResult(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = None


class CreatePartitionsResponse(Message, frozen=True):
    api_key = 37
    versions = parse_versions("0-3")
    flexible = parse_versions("2+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    results: Annotated[tuple[CreatePartitionsTopicResult, ...], At("0+")] = ()
