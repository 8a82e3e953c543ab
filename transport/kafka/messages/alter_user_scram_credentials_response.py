"""AlterUserScramCredentialsResponse in versions 0."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, At, Entity, Message, parse_versions


class AlterUserScramCredentialsResult(Entity, frozen=True):
    user: Annotated[str, STRING, At("0+")] = ""
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""


class AlterUserScramCredentialsResponse(Message, frozen=True):
    api_key = 51
    versions = parse_versions("0")
    flexible = parse_versions("0+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    results: Annotated[tuple[AlterUserScramCredentialsResult, ...], At("0+")] = ()
