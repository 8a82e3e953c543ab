"""DescribeUserScramCredentialsResponse in versions 0."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import INT8, INT16, INT32, STRING, At, Entity, Message, parse_versions


class CredentialInfo(Entity, frozen=True):
    mechanism: Annotated[int, INT8, At("0+")] = 0
    iterations: Annotated[int, INT32, At("0+")] = 0


class DescribeUserScramCredentialsResult(Entity, frozen=True):
    user: Annotated[str, STRING, At("0+")] = ""
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    credential_infos: Annotated[tuple[CredentialInfo, ...], At("0+")] = ()


class DescribeUserScramCredentialsResponse(Message, frozen=True):
    api_key = 50
    versions = parse_versions("0")
    flexible = parse_versions("0+")

    throttle_time_ms: Annotated[int, INT32, At("0+")] = 0
    error_code: Annotated[int, INT16, At("0+")] = 0
    error_message: Annotated[str | None, STRING, At("0+", nullable="0+")] = ""
    results: Annotated[tuple[DescribeUserScramCredentialsResult, ...], At("0+")] = ()
