"""SaslHandshakeResponse in versions 0-1."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, STRING, At, Message, parse_versions


class SaslHandshakeResponse(Message, frozen=True):
    api_key = 17
    versions = parse_versions("0-1")
    flexible = parse_versions("none")

    error_code: Annotated[int, INT16, At("0+")] = 0
    mechanisms: Annotated[tuple[str, ...], STRING, At("0+")] = ()
