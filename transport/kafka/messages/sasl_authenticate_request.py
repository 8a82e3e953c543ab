"""SaslAuthenticateRequest in versions 0-2."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BYTES, At, Message, parse_versions


class SaslAuthenticateRequest(Message, frozen=True):
    api_key = 36
    versions = parse_versions("0-2")
    flexible = parse_versions("2+")

    auth_bytes: Annotated[bytes, BYTES, At("0+")] = b""
