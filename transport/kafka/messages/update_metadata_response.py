"""UpdateMetadataResponse in versions 0-8."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, At, Message, parse_versions


class UpdateMetadataResponse(Message, frozen=True):
    api_key = 6
    versions = parse_versions("0-8")
    flexible = parse_versions("6+")

    error_code: Annotated[int, INT16, At("0+")] = 0
