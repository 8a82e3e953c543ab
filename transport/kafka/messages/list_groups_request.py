"""ListGroupsRequest in versions 0-5."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import STRING, At, Message, parse_versions


class ListGroupsRequest(Message, frozen=True):
    api_key = 16
    versions = parse_versions("0-5")
    flexible = parse_versions("3+")

    states_filter: Annotated[tuple[str, ...], STRING, At("4+")] = ()
    types_filter: Annotated[tuple[str, ...], STRING, At("5+")] = ()
