"""ApiVersionsRequest in versions 0-5."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT32, STRING, At, Message, parse_versions


class ApiVersionsRequest(Message, frozen=True):
    api_key = 18
    versions = parse_versions("0-5")
    flexible = parse_versions("3+")

    client_software_name: Annotated[str, STRING, At("3+", ignorable=True)] = ""
    client_software_version: Annotated[str, STRING, At("3+", ignorable=True)] = ""
    cluster_id: Annotated[str | None, STRING, At("5+", nullable="5+", ignorable=True)] = None
    node_id: Annotated[int, INT32, At("5+", ignorable=True)] = -1
