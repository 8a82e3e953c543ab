"""UnregisterBrokerResponse in versions 0."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, At, Message, parse_versions


class UnregisterBrokerResponse(Message, frozen=True):
    api_key = 64
    versions = parse_versions("0")
    flexible = parse_versions("0+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
