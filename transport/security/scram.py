"""The SASL mechanisms SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), without I/O.

The exchange has two messages of the client and two of the server. Neither end learns the other's secret: the client
proves that it knows the password, the server that it knows what was derived from it. As in Kafka, names and passwords
are used as their UTF-8 bytes without preparation (SASLprep), and there is no channel binding.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Generator, Mapping
from types import MappingProxyType
from typing import Final

from attrs import field, frozen

from transport.security.errors import AuthenticationFailed
from transport.security.plain import Login

MECHANISMS: Final = MappingProxyType({"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"})
"""The hash function of each mechanism."""

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 100_000
"""The most iterations that a client computes, about 50 ms. Kafka creates no credentials with more than 16,384."""

NONCE_BYTES: Final = 24

_NO_BINDING: Final = "n,,"
_FIELD: Final = re.compile(r"([A-Za-z])=(.*)", re.DOTALL)
_ESCAPED: Final = re.compile("=(2C|3D)?")
_NONCE: Final = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_CLIENT_FIRST: Final = re.compile(r"n,(?:a=([^,]*))?,(n=([^,]+),r=([^,]+)(?:,.*)?)", re.DOTALL)
_ITERATIONS: Final = re.compile(r"[0-9]{1,9}")


@frozen
class ScramCredential:
    """The form in which a server keeps a user's password."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@frozen
class ClientFirst:
    """A client's first message: the user's name, the client's nonce, and the message without its header."""

    user: str
    nonce: str
    header: str
    bare: str


def credential(hash_name: str, password: str, salt: bytes, iterations: int) -> ScramCredential:
    """Return the credential of a password; its cost grows with the iterations."""
    return credential_of(
        hash_name, hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations), salt, iterations
    )


def credential_of(hash_name: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """Return the credential of a password that its owner has salted already."""
    stored = hashlib.new(hash_name, _hmac(hash_name, salted, b"Client Key")).digest()
    return ScramCredential(salt, stored, _hmac(hash_name, salted, b"Server Key"), iterations)


# --- the client -------------------------------------------------------------------------------------------------


def client(hash_name: str, login: Login, nonce: str) -> Generator[bytes, bytes, None]:
    """Yield the client's messages, and take the server's; returns when the server has proved itself.

    Raises AuthenticationFailed for a message that is none, and for a server that does not know the user's credential.
    """
    bare = f"n={_escape(login.user)},r={nonce}"
    challenge = yield f"{_NO_BINDING}{bare}".encode()
    server_first = _text(challenge)
    parts = _fields(server_first)
    salt, iterations = _checked_challenge(parts, nonce)
    without_proof = f"c={_base64(_NO_BINDING.encode())},r={parts['r']}"
    signed = f"{bare},{server_first},{without_proof}".encode()
    salted = hashlib.pbkdf2_hmac(hash_name, login.password.encode(), salt, iterations)
    key = _hmac(hash_name, salted, b"Client Key")
    signature = _hmac(hash_name, hashlib.new(hash_name, key).digest(), signed)
    outcome = yield f"{without_proof},p={_base64(_xor(key, signature))}".encode()
    final = _fields(_text(outcome))
    if "e" in final:
        raise AuthenticationFailed(f"the server refused: {final['e']:.100}")
    expected = _hmac(hash_name, _hmac(hash_name, salted, b"Server Key"), signed)
    if not hmac.compare_digest(_unbase64(final.get("v", "")), expected):
        raise AuthenticationFailed("the server does not know the credential of the user: it may be an impostor")


def _checked_challenge(parts: Mapping[str, str], nonce: str) -> tuple[bytes, int]:
    """Return the salt and the number of iterations of a server's first message."""
    if "m" in parts:
        raise AuthenticationFailed("the server asks for an extension of SCRAM that is unknown here")
    whole = parts.get("r", "")
    if not (whole.startswith(nonce) and len(whole) > len(nonce) and _NONCE.fullmatch(whole)):
        raise AuthenticationFailed("the server's nonce does not extend the client's")
    text = parts.get("i", "")
    iterations = int(text) if _ITERATIONS.fullmatch(text) else 0
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise AuthenticationFailed(
            f"the server asks for {text:.20} iterations: {MIN_ITERATIONS} to {MAX_ITERATIONS} are accepted"
        )
    salt = _unbase64(parts.get("s", ""))
    if not salt:
        raise AuthenticationFailed("the server's message has no salt")
    return salt, iterations


# --- the server -------------------------------------------------------------------------------------------------


def read_client_first(message: bytes) -> ClientFirst:
    """Return a client's first message. Raises AuthenticationFailed."""
    match = _CLIENT_FIRST.fullmatch(_text(message))
    if match is None:
        raise AuthenticationFailed("the first message of SCRAM is malformed")
    authorized_as, bare, name, nonce = match.groups()
    user = _unescape(name)
    # To act as somebody else is no part of Kafka's SASL.
    if authorized_as and _unescape(authorized_as) != user:
        raise AuthenticationFailed("the first message of SCRAM asks to act as another user")
    if not _NONCE.fullmatch(nonce):
        raise AuthenticationFailed("the nonce of the client is malformed")
    header = f"n,a={authorized_as}," if authorized_as is not None else _NO_BINDING
    return ClientFirst(user, nonce, header, bare)


def server(hash_name: str, first: ClientFirst, known: ScramCredential, nonce: str) -> Generator[bytes, bytes, bytes]:
    """Yield the server's first message, take the client's second one, and return the server's last one.

    Raises AuthenticationFailed for a client that does not know the password.
    """
    whole = first.nonce + nonce
    server_first = f"r={whole},s={_base64(known.salt)},i={known.iterations}"
    final = _text((yield server_first.encode()))
    without_proof, has_proof, proof = final.rpartition(",p=")
    parts = _fields(without_proof)
    if not has_proof or parts.get("r") != whole or parts.get("c") != _base64(first.header.encode()):
        raise AuthenticationFailed("the last message of SCRAM is malformed")
    signed = f"{first.bare},{server_first},{without_proof}".encode()
    key = _xor(_unbase64(proof), _hmac(hash_name, known.stored_key, signed))
    if not hmac.compare_digest(hashlib.new(hash_name, key).digest(), known.stored_key):
        raise AuthenticationFailed("the password is wrong")
    return f"v={_base64(_hmac(hash_name, known.server_key, signed))}".encode()


# --- the parts of messages --------------------------------------------------------------------------------------


def _fields(message: str) -> dict[str, str]:
    matches = [_FIELD.fullmatch(part) for part in message.split(",")]
    found = {match[1]: match[2] for match in matches if match is not None}
    if len(found) != len(matches):
        raise AuthenticationFailed("a message of SCRAM is malformed")
    return found


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise AuthenticationFailed("a message of SCRAM is not UTF-8") from None


def _escape(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match[1] is None:
            raise AuthenticationFailed("the user's name in the first message of SCRAM is malformed")
        return "," if match[1] == "2C" else "="

    return _ESCAPED.sub(character, text)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise AuthenticationFailed("a message of SCRAM has a part that is not base64") from None


def _hmac(hash_name: str, key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, hash_name)


def _xor(one: bytes, other: bytes) -> bytes:
    if len(one) != len(other):
        raise AuthenticationFailed("the proof of SCRAM has the wrong length")
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
