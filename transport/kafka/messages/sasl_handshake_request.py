"""SaslHandshakeRequest in versions 0-1."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import STRING, At, Message, parse_versions


class SaslHandshakeRequest(Message, frozen=True):
    api_key = 17
    versions = parse_versions("0-1")
    flexible = parse_versions("none")

    mechanism: Annotated[str, STRING, At("0+")] = ""
