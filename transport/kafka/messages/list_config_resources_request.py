"""ListConfigResourcesRequest in versions 0-1."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT8, At, Message, parse_versions


class ListConfigResourcesRequest(Message, frozen=True):
    api_key = 74
    versions = parse_versions("0-1")
    flexible = parse_versions("0+")

    resource_types: Annotated[tuple[int, ...], INT8, At("1+")] = ()
