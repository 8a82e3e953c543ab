"""DescribeUserScramCredentialsRequest in versions 0."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import STRING, At, Entity, Message, parse_versions


class UserName(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""


class DescribeUserScramCredentialsRequest(Message, frozen=True):
    api_key = 50
    versions = parse_versions("0")
    flexible = parse_versions("0+")

    users: Annotated[tuple[UserName, ...] | None, At("0+", nullable="0+")] = ()
