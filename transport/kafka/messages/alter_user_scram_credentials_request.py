"""AlterUserScramCredentialsRequest in versions 0."""

from __future__ import annotations

from typing import Annotated

from transport.kafka.schema import BYTES, INT8, INT32, STRING, At, Entity, Message, parse_versions


class ScramCredentialDeletion(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    mechanism: Annotated[int, INT8, At("0+")] = 0


class ScramCredentialUpsertion(Entity, frozen=True):
    name: Annotated[str, STRING, At("0+")] = ""
    mechanism: Annotated[int, INT8, At("0+")] = 0
    iterations: Annotated[int, INT32, At("0+")] = 0
    salt: Annotated[bytes, BYTES, At("0+")] = b""
    salted_password: Annotated[bytes, BYTES, At("0+")] = b""


class AlterUserScramCredentialsRequest(Message, frozen=True):
    api_key = 51
    versions = parse_versions("0")
    flexible = parse_versions("0+")

    deletions: Annotated[tuple[ScramCredentialDeletion, ...], At("0+")] = ()
    upsertions: Annotated[tuple[ScramCredentialUpsertion, ...], At("0+")] = ()
