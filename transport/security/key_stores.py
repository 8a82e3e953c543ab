"""Key stores and trust stores: PEM files, PEM text, PKCS12 files, and Java's own files, JKS.

PKCS12 and the keys of JKS take the library `cryptography`, which comes with the extra `klamm[pkcs12]`. Other formats
are refused with the command that converts them.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import field, frozen

from transport.host import Host
from transport.input_files import Limit, UnreadableFile, read_bytes
from transport.security.errors import InvalidSecurity

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

    from transport.security.jks import KeyStore

PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
JKS: Final = "JKS"

_BLOCK: Final = re.compile(r"(-----BEGIN [A-Z0-9 ]+-----)([A-Za-z0-9+/=\s]*)(-----END [A-Z0-9 ]+-----)")
_LINE: Final = re.compile(".{1,64}")

_LIMIT: Final = Limit(16, "this is no key store")
_BEGIN: Final = b"-----BEGIN "
_JCEKS_MAGIC: Final = b"\xce\xce\xce\xce"
_ONLY_IN_JAVA: Final = ("JCEKS", "BCFKS", "BKS", "DKS")
_PASSWORD_BYTES: Final = 16
_SEQUENCE: Final = 0x30
"""The first byte of a file in PKCS12."""

_NO_KEY: Final = "it has no private key with its certificate"
_NOT_OPENED: Final = "the password is wrong, or it is damaged"
_LIBRARY: Final = "the library cryptography: pip install 'klamm[pkcs12]', or convert the store to PEM"


@frozen
class Store:
    """A key store or a trust store. `name` begins the names of its settings; there is a file, or text in PEM."""

    name: str
    location: str | None = None
    text: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    type: str | None = None

    def load(self) -> tuple[bytes, str]:
        """Return the content of the store and its type: PEM, PKCS12 or JKS. Raises InvalidSecurity."""
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
        """Return the type that the content has; Java, too, takes a store of type JKS or PKCS12 for the other one."""
        from transport.security import jks  # noqa: PLC0415  few stores are in this format

        declared = (self.type or "").upper()
        if content.startswith(_JCEKS_MAGIC) or declared in _ONLY_IN_JAVA:
            only_in_java = "JCEKS" if content.startswith(_JCEKS_MAGIC) else declared
            raise self.unusable(
                f"{only_in_java} is not supported: keytool -importkeystore -srckeystore {self.location} -srcstoretype"
                f" {only_in_java} -destkeystore NEW.p12 -deststoretype PKCS12 converts it; set {self.name}.type=PKCS12"
            )
        if content.startswith(jks.MAGIC):
            found = JKS
        else:
            found = PEM if _BEGIN in content else PKCS12 if content[:1] == bytes([_SEQUENCE]) else ""
        accepted = {"": (PEM, PKCS12, JKS), JKS: (PEM, PKCS12, JKS), PKCS12: (PKCS12, JKS)}.get(declared, (declared,))
        if found not in accepted:
            raise self.unusable(f"this is no file in {' or '.join(accepted)}: check {self.name}.type")
        return found


def load_keys(context: ssl.SSLContext, store: Store, key_password: str | None) -> None:
    """Give a context the private key and the certificates of a key store. Raises InvalidSecurity."""
    content, kind = store.load()
    password = key_password or ""
    if kind != PEM:
        # The key does not reach the disk as it is.
        password = Host().rng.randbytes(_PASSWORD_BYTES).hex()
        keys = _keys_of_jks(store, content, key_password) if kind == JKS else _keys_of_pkcs12(store, content)
        content = _pem_of(keys, password)
    with _file_with(content) as path:
        try:
            context.load_cert_chain(path, password=lambda: password)
        except (ssl.SSLError, ValueError, TypeError):
            cure = (
                "check ssl.key.password" if b"ENCRYPTED" in content else "it needs both, the certificate after the key"
            )
            raise store.unusable(f"no private key with its certificate can be read from it: {cure}") from None


def load_authorities(context: ssl.SSLContext, store: Store) -> None:
    """Let a context trust the certificates of a trust store. Raises InvalidSecurity."""
    content, kind = store.load()
    trusted: str | bytes = content.decode("ascii", errors="replace")
    if kind != PEM:
        found = _trusted_of_jks(store, content) if kind == JKS else _trusted_of_pkcs12(store, content)
        if not found:
            raise store.unusable("it has no certificate")
        trusted = b"".join(found)
    try:
        context.load_verify_locations(cadata=trusted)
    except (ssl.SSLError, ValueError):
        raise store.unusable("no certificate can be read from it") from None


@frozen
class _Keys:
    """A private key, and its certificates in DER: first its own, then those of authorities."""

    key: PrivateKeyTypes
    chain: Sequence[bytes]


def _pem_of(keys: _Keys, password: str) -> bytes:
    """Return the key, encrypted with a password, and the certificates."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  an extra

    encryption = serialization.BestAvailableEncryption(password.encode())
    key = keys.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    return key + "".join(map(ssl.DER_cert_to_PEM_cert, keys.chain)).encode()


# --- PKCS12 -----------------------------------------------------------------------------------------------------


def _keys_of_pkcs12(store: Store, content: bytes) -> _Keys:
    found = _open_pkcs12(store, content)
    if found.key is None or found.cert is None:
        raise store.unusable(_NO_KEY)
    return _Keys(found.key, _certificates_of_pkcs12(found))


def _trusted_of_pkcs12(store: Store, content: bytes) -> list[bytes]:
    return _certificates_of_pkcs12(_open_pkcs12(store, content))


def _certificates_of_pkcs12(found: PKCS12KeyAndCertificates) -> list[bytes]:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  an extra

    entries = [entry for entry in (found.cert, *found.additional_certs) if entry is not None]
    return [entry.certificate.public_bytes(serialization.Encoding.DER) for entry in entries]


def _open_pkcs12(store: Store, content: bytes) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415  an extra
    except ImportError:
        raise store.unusable(f"PKCS12 takes {_LIBRARY}") from None
    try:
        return pkcs12.load_pkcs12(content, (store.password or "").encode())
    except ValueError:
        raise store.unusable(f"{_NOT_OPENED}: check {store.name}.password") from None


# --- JKS --------------------------------------------------------------------------------------------------------


def _keys_of_jks(store: Store, content: bytes, key_password: str | None) -> _Keys:
    """Return the first key, whose password is the store's if it has none of its own."""
    from transport.security import jks  # noqa: PLC0415  few stores are in this format

    try:
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  an extra
        from cryptography.hazmat.primitives.serialization import load_der_private_key  # noqa: PLC0415  an extra
    except ImportError:
        raise store.unusable(f"a key in JKS takes {_LIBRARY}") from None
    entries = _open_jks(store, content).keys
    if not entries or not entries[0].chain:
        raise store.unusable(_NO_KEY)
    password = key_password or store.password
    if password is None:
        raise store.unusable(f"its key has a password: set {store.name}.password")
    try:
        return _Keys(load_der_private_key(entries[0].decrypt(password), None), entries[0].chain)
    except jks.WrongPassword:
        raise store.unusable("its key has another password: check ssl.key.password") from None
    except (jks.DamagedStore, ValueError, UnsupportedAlgorithm):
        raise store.unusable("its private key is of an unknown kind") from None


def _trusted_of_jks(store: Store, content: bytes) -> list[bytes]:
    """Return the certificates of authorities and those of keys, which Java trusts as well."""
    found = _open_jks(store, content)
    return [*found.trusted, *(entry.chain[0] for entry in found.keys if entry.chain)]


def _open_jks(store: Store, content: bytes) -> KeyStore:
    from transport.security import jks  # noqa: PLC0415  few stores are in this format

    try:
        return jks.read_jks(content, store.password)
    except jks.DamagedStore:
        raise store.unusable("the file is damaged or cut short: copy it again, `keytool -list` checks it") from None
    except jks.WrongPassword:
        raise store.unusable(f"{_NOT_OPENED}: check {store.name}.password") from None


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
