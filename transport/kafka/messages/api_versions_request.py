"""ApiVersionsRequest in versions 0-4."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import STRING, At, Message, parse_versions


class ApiVersionsRequest(Message, frozen=True):
    api_key = 18
    versions = parse_versions("0-4")
    flexible = parse_versions("3+")

    client_software_name: Annotated[str, STRING, At("3+", ignorable=True)] = ""
    client_software_version: Annotated[str, STRING, At("3+", ignorable=True)] = ""
