"""FindCoordinatorResponse in versions 0-6."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT16, INT32, STRING, At, Entity, Message, parse_versions


class Coordinator(Entity, frozen=True):
    key: Annotated[str, STRING, At("4+")] = ""
    node_id: Annotated[int, INT32, At("4+")] = 0
    host: Annotated[str, STRING, At("4+")] = ""
    port: Annotated[int, INT32, At("4+")] = 0
    error_code: Annotated[int, INT16, At("4+")] = 0
    error_message: Annotated[str | None, STRING, At("4+", nullable="4+", ignorable=True)] = ""


class FindCoordinatorResponse(Message, frozen=True):
    api_key = 10
    versions = parse_versions("0-6")
    flexible = parse_versions("3+")

    throttle_time_ms: Annotated[int, INT32, At("1+", ignorable=True)] = 0
    error_code: Annotated[int, INT16, At("0-3")] = 0
    error_message: Annotated[str | None, STRING, At("1-3", nullable="1-3", ignorable=True)] = ""
    node_id: Annotated[int, INT32, At("0-3")] = 0
    host: Annotated[str, STRING, At("0-3")] = ""
    port: Annotated[int, INT32, At("0-3")] = 0
    coordinators: Annotated[tuple[Coordinator, ...], At("4+")] = ()
