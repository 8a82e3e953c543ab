"""TLS: the contexts that settings ask for, and what went wrong in words."""

from __future__ import annotations

import ssl
from enum import Enum
from types import MappingProxyType
from typing import Final

import trio
from attrs import field, frozen

from transport.security.errors import InvalidSecurity
from transport.security.key_stores import Store, load_authorities, load_keys

_VERSIONS: Final = MappingProxyType({"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3})
VERSIONS: Final = tuple(_VERSIONS)
"""The values of `ssl.enabled.protocols`. Older ones are not safe, and are refused."""


class ClientAuth(Enum):
    """Whether a server asks clients for a certificate: `ssl.client.auth`."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


_VERIFY: Final = MappingProxyType(
    {
        ClientAuth.NONE: ssl.CERT_NONE,
        ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
        ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
    }
)


@frozen
class Tls:
    """The TLS that the settings `ssl.*` ask for. Without a trust store, the system's authorities are trusted."""

    keystore: Store | None = None
    truststore: Store | None = None
    key_password: str | None = field(default=None, repr=False)
    verify_hostname: bool = True
    client_auth: ClientAuth = ClientAuth.NONE
    versions: tuple[str, ...] = VERSIONS
    trusts_system: bool = False
    """Whether the system's authorities are trusted besides those of the trust store."""

    def client_context(self) -> ssl.SSLContext:
        """Return the context of connections to servers. Raises InvalidSecurity if a store cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.verify_hostname
        self._load(context)
        if self.keystore is not None:
            load_keys(context, self.keystore, self.key_password)
        return context

    def server_context(self) -> ssl.SSLContext:
        """Return the context of connections from clients. Raises InvalidSecurity if a store cannot be used."""
        if self.keystore is None:
            raise InvalidSecurity("ssl.keystore.location is not set: a server with TLS needs a key and its certificate")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = _VERIFY[self.client_auth]
        self._load(context)
        load_keys(context, self.keystore, self.key_password)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        wanted = [_VERSIONS[name] for name in self.versions]
        context.minimum_version, context.maximum_version = min(wanted), max(wanted)
        if self.truststore is not None:
            load_authorities(context, self.truststore)
        if self.truststore is None or self.trusts_system:
            context.load_default_certs(
                ssl.Purpose.SERVER_AUTH if context.protocol == ssl.PROTOCOL_TLS_CLIENT else ssl.Purpose.CLIENT_AUTH
            )


# --- what went wrong --------------------------------------------------------------------------------------------

_NO_AUTHORITY: Final = "no authority of ssl.truststore.location has signed its certificate"
_CHECK_PORT: Final = "check the port and security.protocol"
_NO_TLS: Final = f"it does not speak TLS there: {_CHECK_PORT}"
_ASKS: Final = "it asks for a client certificate: set ssl.keystore.location"

_VERIFY_FAULTS: Final = MappingProxyType(
    {
        9: "its certificate is not valid yet",
        10: "its certificate has expired",
        18: _NO_AUTHORITY,
        19: _NO_AUTHORITY,
        20: _NO_AUTHORITY,
        21: _NO_AUTHORITY,
    }
)
"""The meanings of OpenSSL's codes of a certificate's verification (X509_V_ERR)."""

_REASONS: Final = MappingProxyType(
    {
        "WRONG_VERSION_NUMBER": _NO_TLS,
        "RECORD_LAYER_FAILURE": _NO_TLS,
        "HTTP_REQUEST": _NO_TLS,
        "UNKNOWN_PROTOCOL": _NO_TLS,
        "BAD_RECORD_TYPE": _NO_TLS,
        "PACKET_LENGTH_TOO_LONG": _NO_TLS,
        "UNSUPPORTED_PROTOCOL": "it has no version of TLS that ssl.enabled.protocols lists",
        "TLSV1_ALERT_PROTOCOL_VERSION": "it has no version of TLS that ssl.enabled.protocols lists",
        "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate, and ssl.client.auth is required",
        "TLSV13_ALERT_CERTIFICATE_REQUIRED": _ASKS,
        "TLSV1_ALERT_CERTIFICATE_REQUIRED": _ASKS,
        "UNEXPECTED_EOF_WHILE_READING": f"it ended the connection in the middle of a TLS handshake: {_CHECK_PORT}",
    }
)
_REFUSED_ALERTS: Final = MappingProxyType(
    {
        "CERTIFICATE_EXPIRED": "it has expired",
        "CERTIFICATE_UNKNOWN": "it is not accepted there",
        "CERTIFICATE_REVOKED": "it is revoked",
        "BAD_CERTIFICATE": "it is not accepted there, or there is none",  # so Java answers a client without one
        "UNSUPPORTED_CERTIFICATE": "it is not accepted there",
        "UNKNOWN_CA": "its authority is not trusted there",
    }
)


def fault_of(error: BaseException, host: str = "") -> str | None:
    """Return what went wrong with TLS, as the end of a sentence about the peer; None if it is not about TLS."""
    cause = error.__cause__ if isinstance(error, trio.BrokenResourceError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _verify_fault(cause, host)
    if not isinstance(cause, ssl.SSLError):
        return None
    reason = str(cause.reason or "")
    for alert, why in _REFUSED_ALERTS.items():
        if reason.endswith(f"ALERT_{alert}"):
            return f"it refuses our certificate ({why}): check ssl.keystore.location"
    if isinstance(cause, ssl.SSLEOFError):
        reason = "UNEXPECTED_EOF_WHILE_READING"
    return _REASONS.get(reason) or f"TLS failed ({reason.replace('_', ' ').lower() or cause})"


def _verify_fault(error: ssl.SSLCertVerificationError, host: str) -> str:
    if "match" in error.verify_message.lower():
        return f"its certificate is not for {host}: check ssl.endpoint.identification.algorithm"
    return _VERIFY_FAULTS.get(error.verify_code) or f"its certificate is not valid ({error.verify_message})"
