"""FindCoordinatorRequest in versions 0-6."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT8, STRING, At, Message, parse_versions


class FindCoordinatorRequest(Message, frozen=True):
    api_key = 10
    versions = parse_versions("0-6")
    flexible = parse_versions("3+")

    key: Annotated[str, STRING, At("0-3")] = ""
    key_type: Annotated[int, INT8, At("1+")] = 0
    coordinator_keys: Annotated[tuple[str, ...], STRING, At("4+")] = ()
