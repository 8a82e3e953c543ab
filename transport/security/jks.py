"""Java's own key stores, JKS: the keys, the certificates, and the two checks by a password.

A file is (numbers are big-endian; a text is its length in two bytes, and the bytes):

    magic FEEDFEED, version 1 or 2, number of entries
    each entry: tag, alias as a text, time in eight bytes, then
        tag 1: an encrypted key with its length, the number of certificates, and these
        tag 2: a trusted certificate
    a certificate: in version 2 its type as a text; its length; its DER
    SHA-1 of the store's password, of a phrase, and of everything before

The password of the store guards against changes alone. A key is encrypted with a password of its own, by a cipher that
Sun invented: an exclusive or with a chain of SHA-1, which begins with a salt.
"""

from __future__ import annotations

import hashlib
import hmac
from struct import Struct
from typing import Final

from attrs import define, field, frozen

MAGIC: Final = b"\xfe\xed\xfe\xed"

_PHRASE: Final = b"Mighty Aphrodite"
_DIGEST_BYTES: Final = 20
"""The length of SHA-1, and of the salt of a key."""

_KEY, _TRUSTED = 1, 2
_TYPED: Final = 2
"""The version in which certificates have types."""

_TIME_BYTES: Final = 8
_UINT16: Final = Struct(">H")
_UINT32: Final = Struct(">I")

_SEQUENCE, _OCTETS = 0x30, 0x04
_SHORT_LENGTH: Final = 0x80
"""The first length that DER writes in more than one byte."""

_ALGORITHM: Final = bytes.fromhex("060a2b060104012a021101010500")
"""Sun's cipher, 1.3.6.1.4.1.42.2.17.1.1, without parameters, in DER."""


class DamagedStore(Exception):
    """The bytes are not those of a key store in JKS."""


class WrongPassword(Exception):
    """A password does not open what it should, or the bytes have changed."""


@frozen
class KeyEntry:
    """A private key, encrypted, and its certificates in DER: first its own, then those of authorities."""

    encrypted: bytes = field(repr=False)
    chain: tuple[bytes, ...]

    def decrypt(self, password: str) -> bytes:
        """Return the key in PKCS8. Raises WrongPassword, or DamagedStore if Sun's cipher does not encrypt it."""
        content = _contents(_SEQUENCE, self.encrypted)
        algorithm, sealed = _split(_SEQUENCE, content)
        if algorithm != _ALGORITHM:
            raise DamagedStore
        sealed = _contents(_OCTETS, sealed)
        salt, secret, check = sealed[:_DIGEST_BYTES], sealed[_DIGEST_BYTES:-_DIGEST_BYTES], sealed[-_DIGEST_BYTES:]
        key = _xor_chain(_chars(password), salt, secret)
        if not hmac.compare_digest(_sha1(_chars(password) + key), check):
            raise WrongPassword
        return key


@frozen
class KeyStore:
    """The entries of a key store, in their order."""

    keys: tuple[KeyEntry, ...]
    trusted: tuple[bytes, ...]
    """The certificates of authorities, in DER."""


def read_jks(content: bytes, password: str | None) -> KeyStore:
    """Return the entries of a store. As in Java, it is not checked for changes if there is no password.

    Raises DamagedStore if the bytes are none, WrongPassword if the password does not fit.
    """
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    store = _read_entries(_Bytes(body))
    if password is not None and not hmac.compare_digest(_sha1(_chars(password) + _PHRASE + body), digest):
        raise WrongPassword
    return store


@define
class _Bytes:
    """Bytes that are read from the front."""

    content: bytes
    at: int = 0

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.content):
            raise DamagedStore
        taken, self.at = self.content[self.at : end], end
        return taken

    def number(self) -> int:
        [number] = _UINT32.unpack(self.take(_UINT32.size))
        return int(number)

    def text(self) -> bytes:
        [length] = _UINT16.unpack(self.take(_UINT16.size))
        return self.take(length)

    def certificate(self, version: int) -> bytes:
        if version >= _TYPED:
            self.text()
        return self.take(self.number())


def _read_entries(data: _Bytes) -> KeyStore:
    keys: list[KeyEntry] = []
    trusted: list[bytes] = []
    magic, version, count = data.take(len(MAGIC)), data.number(), data.number()
    if magic != MAGIC or version not in (1, _TYPED):
        raise DamagedStore
    for _ in range(count):
        tag = data.number()
        data.text()
        data.take(_TIME_BYTES)
        if tag == _KEY:
            encrypted = data.take(data.number())
            chain = [data.certificate(version) for _ in range(data.number())]
            keys.append(KeyEntry(encrypted, tuple(chain)))
        elif tag == _TRUSTED:
            trusted.append(data.certificate(version))
        else:
            raise DamagedStore
    if data.at != len(data.content):
        raise DamagedStore
    return KeyStore(tuple(keys), tuple(trusted))


# --- the cipher -------------------------------------------------------------------------------------------------


def _xor_chain(password: bytes, salt: bytes, data: bytes) -> bytes:
    """Combine data with the digests of which each is the password's and that of the one before."""
    plain, digest = bytearray(), salt
    for at in range(0, len(data), _DIGEST_BYTES):
        digest = _sha1(password + digest)
        plain += bytes(a ^ b for a, b in zip(data[at : at + _DIGEST_BYTES], digest, strict=False))
    return bytes(plain)


def _chars(password: str) -> bytes:
    """Return a password as the characters that Java has; a file of properties may name halves of one."""
    return password.encode("utf-16-be", "surrogatepass")


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


# --- DER --------------------------------------------------------------------------------------------------------


def _contents(tag: int, data: bytes) -> bytes:
    """Return what is in the only element that data has."""
    content, rest = _split(tag, data)
    if rest:
        raise DamagedStore
    return content


def _split(tag: int, data: bytes) -> tuple[bytes, bytes]:
    """Return what is in the first element, and the bytes after it."""
    found = _Bytes(data)
    if found.take(1)[0] != tag:
        raise DamagedStore
    length = found.take(1)[0]
    if length >= _SHORT_LENGTH:
        length = int.from_bytes(found.take(length - _SHORT_LENGTH), "big")
    return found.take(length), data[found.at :]
