"""Key stores and trust stores: PEM files, PEM text, and PKCS12 files.

PKCS12 takes the library `cryptography`, which comes with the extra `klamm[pkcs12]`. Java's own format, JKS, is refused
with the command that converts it.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import field, frozen

from transport.host import Host
from transport.input_files import Limit, UnreadableFile, read_bytes
from transport.security.errors import InvalidSecurity

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
JKS: Final = "JKS"

_BLOCK: Final = re.compile(r"(-----BEGIN [A-Z0-9 ]+-----)([A-Za-z0-9+/=\s]*)(-----END [A-Z0-9 ]+-----)")
_LINE: Final = re.compile(".{1,64}")

_LIMIT: Final = Limit(16, "this is no key store")
_BEGIN: Final = b"-----BEGIN "
_JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
_PASSWORD_BYTES: Final = 16
_SEQUENCE: Final = 0x30
"""The first byte of a file in PKCS12."""


@frozen
class Store:
    """A key store or a trust store. `name` begins the names of its settings; there is a file, or text in PEM."""

    name: str
    location: str | None = None
    text: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    type: str | None = None

    def load(self) -> tuple[bytes, str]:
        """Return the content of the store and its type, PEM or PKCS12. Raises InvalidSecurity."""
        if self.location is None:
            return "".join(map(_in_lines, _BLOCK.finditer(self.text or ""))).encode(), PEM
        try:
            content = read_bytes(Path(self.location), _LIMIT)
        except UnreadableFile as error:
            raise InvalidSecurity(f"{self.name}.location: cannot read {error}") from None
        return content, self._type_of(content)

    def unusable(self, reason: str) -> InvalidSecurity:
        """Return an error about this store."""
        what = f"{self.name}.location: cannot use {self.location}" if self.location else f"{self.name}: cannot use it"
        return InvalidSecurity(f"{what}: {reason}")

    def _type_of(self, content: bytes) -> str:
        """Return the type that the content has; Java, too, takes a file in PKCS12 for a key store of type JKS."""
        if content.startswith(_JKS_MAGIC):
            raise self.unusable(
                f"this is a key store of Java's own (JKS): keytool -importkeystore -srckeystore {self.location}"
                f" -destkeystore NEW.p12 -deststoretype PKCS12 converts it; set {self.name}.type=PKCS12"
            )
        found = PEM if _BEGIN in content else PKCS12 if content[:1] == bytes([_SEQUENCE]) else None
        wanted = None if self.type is None or self.type.upper() == JKS else self.type.upper()
        if found is None or wanted not in (None, found):
            raise self.unusable(f"this is no file in {wanted or 'PEM or PKCS12'}: check {self.name}.type")
        return found


def load_keys(context: ssl.SSLContext, store: Store, key_password: str | None) -> None:
    """Give a context the private key and the certificates of a key store. Raises InvalidSecurity."""
    content, kind = store.load()
    password = key_password or ""
    if kind == PKCS12:
        # The key does not reach the disk as it is.
        password = Host().rng.randbytes(_PASSWORD_BYTES).hex()
        content = _pem_of(store, content, password)
    with _file_with(content) as path:
        try:
            context.load_cert_chain(path, password=lambda: password)
        except (ssl.SSLError, ValueError, TypeError):
            cure = (
                "check ssl.key.password" if b"ENCRYPTED" in content else "it needs both, the certificate after the key"
            )
            raise store.unusable(f"no private key with its certificate can be read from it: {cure}") from None


def load_authorities(context: ssl.SSLContext, store: Store) -> None:
    """Let a context trust the certificates of a trust store, and no others. Raises InvalidSecurity."""
    content, kind = store.load()
    text = _certificates_of(store, content) if kind == PKCS12 else content.decode("ascii", errors="replace")
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise store.unusable("no certificate can be read from it") from None


def _pem_of(store: Store, content: bytes, password: str) -> bytes:
    """Return the key, encrypted with a password, and the certificates of a file in PKCS12."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  an extra

    found = _open_pkcs12(store, content)
    if found.key is None or found.cert is None:
        raise store.unusable("it has no private key with its certificate")
    encryption = serialization.BestAvailableEncryption(password.encode())
    key = found.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    chain = [found.cert, *found.additional_certs]
    return key + b"".join(entry.certificate.public_bytes(serialization.Encoding.PEM) for entry in chain)


def _certificates_of(store: Store, content: bytes) -> str:
    """Return the certificates of a file in PKCS12."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  an extra

    found = _open_pkcs12(store, content)
    entries = [entry for entry in (found.cert, *found.additional_certs) if entry is not None]
    if not entries:
        raise store.unusable("it has no certificate")
    return "".join(entry.certificate.public_bytes(serialization.Encoding.PEM).decode() for entry in entries)


def _open_pkcs12(store: Store, content: bytes) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415  an extra
    except ImportError:
        raise store.unusable(
            "PKCS12 takes the library cryptography: pip install 'klamm[pkcs12]', or convert the store to PEM"
        ) from None
    try:
        return pkcs12.load_pkcs12(content, (store.password or "").encode())
    except ValueError:
        raise store.unusable(f"the password is wrong, or it is damaged: check {store.name}.password") from None


def _in_lines(block: re.Match[str]) -> str:
    """Return a block in lines: a property has it in one, with spaces where lines would end."""
    begin, body, end = block.groups()
    return "\n".join([begin, *_LINE.findall("".join(body.split())), end]) + "\n"


@contextmanager
def _file_with(content: bytes) -> Iterator[str]:
    """Return the path of a file that only we can read, for as long as the block takes: `ssl` reads keys from files."""
    handle, path = tempfile.mkstemp(prefix="klamm-", suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        yield path
    finally:
        Path(path).unlink()
