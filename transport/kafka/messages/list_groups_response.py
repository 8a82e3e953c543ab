"""ListGroupsResponse in versions 0-5."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, At, Entity, Message, parse_versions


class ListedGroup(Entity, frozen=True):
    group_id: Annotated[str, STRING, At("0+")] = ""
    protocol_type: Annotated[str, STRING, At("0+")] = ""
    group_state: Annotated[str, STRING, At("4+", ignorable=True)] = ""
    group_type: Annotated[str, STRING, At("5+", ignorable=True)] = ""


class ListGroupsResponse(Message, frozen=True):
    api_key = 16
    versions = parse_versions("0-5")
    flexible = parse_versions("3+")

    throttle_time_ms: Annotated[int, INT32, At("1+", ignorable=True)] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    groups: Annotated[tuple[ListedGroup, ...], At("0+")] = ()
