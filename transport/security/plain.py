"""The SASL mechanism PLAIN (RFC 4616): a user name and a password in one message, without I/O."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from attrs import field, frozen

from transport.security.errors import AuthenticationFailed

PLAIN: Final = "PLAIN"

_SEPARATOR: Final = "\0"
_PARTS: Final = 3


@frozen
class Login:
    """A user name and its password."""

    user: str
    password: str = field(repr=False)


def client(login: Login) -> Generator[bytes, bytes, None]:
    """Yield the client's only message. What the server answers has no content."""
    yield _SEPARATOR.join(("", login.user, login.password)).encode()


def read(message: bytes) -> Login:
    """Return the login in a client's message. Raises AuthenticationFailed."""
    try:
        parts = message.decode().split(_SEPARATOR)
    except UnicodeDecodeError:
        raise AuthenticationFailed("the message of PLAIN is not UTF-8") from None
    if len(parts) != _PARTS:
        raise AuthenticationFailed("the message of PLAIN does not have three parts")
    authorized_as, user, password = parts
    if not (user and password):
        raise AuthenticationFailed("the message of PLAIN lacks the user name or the password")
    # To act as somebody else is no part of Kafka's SASL.
    if authorized_as not in ("", user):
        raise AuthenticationFailed("the message of PLAIN asks to act as another user")
    return Login(user, password)
