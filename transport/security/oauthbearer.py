"""The SASL mechanism OAUTHBEARER (RFC 7628): a bearer token in one message, without I/O."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Final

import orjson

from transport.security.errors import AuthenticationFailed

_SEPARATOR: Final = "\x01"
_NOTED: Final = b"\x01"
"""The answer to a refusal, after which the server ends the exchange."""

_MAX_WORDS: Final = 200


def client(token: str, extensions: Mapping[str, str]) -> Generator[bytes, bytes, None]:
    """Yield the client's only message, and take the server's, which is empty unless the token is refused.

    Raises AuthenticationFailed if it is refused.
    """
    fields = [f"auth=Bearer {token}", *(f"{name}={value}" for name, value in extensions.items())]
    answer = yield f"n,,{_SEPARATOR}{_SEPARATOR.join(fields)}{_SEPARATOR}{_SEPARATOR}".encode()
    if answer:
        yield _NOTED
        raise AuthenticationFailed(refusal(answer.decode(errors="replace")))


def refusal(text: str) -> str:
    """Return what a server says of a token that it refuses: a document of JSON, in words."""
    try:
        document = orjson.loads(text)
    except ValueError:
        return text[:_MAX_WORDS]
    if not isinstance(document, dict) or not document.get("status"):
        return text[:_MAX_WORDS]
    scope = document.get("scope")
    words = f"{document['status']}, it asks for the scope {scope}" if scope else f"{document['status']}"
    return " ".join(words.split())[:_MAX_WORDS]
