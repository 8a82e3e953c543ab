"""SaslAuthenticateResponse in versions 0-2."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BYTES, INT16, INT64, STRING, At, Message, parse_versions


class SaslAuthenticateResponse(Message, frozen=True):
    api_key = 36
    versions = parse_versions("0-2")
    flexible = parse_versions("2+")

    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    auth_bytes: Annotated[bytes, BYTES, At("0+")] = b""
    session_lifetime_ms: Annotated[int, INT64, At("1+", ignorable=True)] = 0
