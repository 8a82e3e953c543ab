"""SASL with ZooKeeper by DIGEST-MD5 (RFC 2831), as Kafka's brokers authenticate in secured clusters.

Kazoo's own needs another package. Only what ZooKeeper asks for is here: quality of protection `auth`, one exchange for
a connection, and ZooKeeper's fixed service and host.
"""

from __future__ import annotations

import hashlib
import re
import secrets  # noqa: TID251  a nonce must not be foreseeable
from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen
from kazoo.exceptions import EXCEPTIONS, AuthFailedError
from kazoo.protocol.serialization import SASL

_URI: Final = "zookeeper/zk-sasl-md5"
_DIRECTIVE: Final = re.compile(r'([\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^,]*))')
_ESCAPED: Final = re.compile(r"\\(.)")


@frozen
class DigestMd5:
    """The client's side of one exchange. `cnonce` is a number that is used once."""

    user: str
    password: str = field(repr=False)
    cnonce: str = field(factory=lambda: secrets.token_hex(16))
    uri: str = _URI

    def answer(self, challenge: bytes) -> bytes:
        """Return the answer to the server's challenge. Raises AuthFailedError for one that is none."""
        asked = self._directives(challenge)
        told = {
            "username": _quoted(self.user),
            "realm": _quoted(asked.get("realm", "")),
            "nonce": _quoted(asked["nonce"]),
            "cnonce": _quoted(self.cnonce),
            "nc": "00000001",
            "qop": "auth",
            "digest-uri": _quoted(self.uri),
            "response": self._proof(asked, "AUTHENTICATE"),
            "charset": "utf-8",
        }
        return ",".join(f"{name}={value}" for name, value in told.items()).encode()

    def verify(self, challenge: bytes, final: bytes) -> None:
        """Check that the server knows the password too. Raises AuthFailedError."""
        found = _parsed(final).get("rspauth", "")
        if not secrets.compare_digest(found, self._proof(self._directives(challenge), "")):
            raise AuthFailedError("the server does not know the password")

    def _directives(self, challenge: bytes) -> Mapping[str, str]:
        asked = _parsed(challenge)
        if "nonce" not in asked:
            raise AuthFailedError("the server has no SASL")
        return asked

    def _proof(self, asked: Mapping[str, str], method: str) -> str:
        """Return the proof that we know the password or, for no method, the one that the server must give."""
        secret = b":".join((_latin(self.user), _latin(asked.get("realm", "")), self.password.encode()))
        session = b":".join((_md5(secret), asked["nonce"].encode(), self.cnonce.encode()))
        parts = (asked["nonce"], "00000001", self.cnonce, "auth", _md5(f"{method}:{self.uri}".encode()).hex())
        return _md5(":".join((_md5(session).hex(), *parts)).encode()).hex()


def _parsed(text: bytes) -> dict[str, str]:
    found = _DIRECTIVE.findall(text.decode("utf-8", "replace"))
    return {name: _ESCAPED.sub(r"\1", quoted) or plain for name, quoted, plain in found}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'


def _latin(text: str) -> bytes:
    """Encode a name as the RFC hashes it: in ISO 8859-1 if that has all of its characters."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def authenticate(connection: Any, credentials: str, timeout: float) -> None:  # noqa: ANN401  kazoo has no annotations
    """Authenticate a connection of kazoo's that has just opened its session, in kazoo's thread.

    Raises AuthFailedError, or ConnectionDropped.
    """
    user, _, password = credentials.partition(":")
    client = DigestMd5(user, password)
    challenge = _exchange(connection, b"", 1, timeout)
    client.verify(challenge, _exchange(connection, client.answer(challenge), 2, timeout))


def _exchange(connection: Any, token: bytes, xid: int, timeout: float) -> bytes:  # noqa: ANN401
    connection._submit(SASL(token), timeout, xid)  # noqa: SLF001
    header, buffer, offset = connection._read_header(timeout)  # noqa: SLF001
    if header.err:
        error = EXCEPTIONS[header.err]
        raise error
    challenge, _ = SASL.deserialize(buffer, offset)
    return challenge or b""
