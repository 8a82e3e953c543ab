"""ZooKeeper's own security: who we are to it (digest), what others may do with our znodes (ACLs), and TLS.

As in Kafka, `zookeeper.set.acl` lets only the creator's identity change what it creates, and everybody read it; but for
`/config/brokers`, `/config/users` and `/delegation_token`, which others may not even read, and `/consumers`, which
stays open. All brokers and controllers of a cluster need the same identity, for they write below each other's znodes.

Where Kafka takes a JAAS file and Java key stores, this takes a file with `USER:PASSWORD` and PEM files. No secret is a
setting of its own, which a command line or a log would show: each is read from a file or the environment.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import field, fields, frozen

from transport.input_files import Limit, UnreadableFile, read_text
from transport.security_settings import SecuritySettings
from transport.store.protocol import StoreUnavailable

CREDENTIALS: Final = "KLAMM_ZOOKEEPER_CREDENTIALS"
"""The environment variable with USER:PASSWORD."""

KEYSTORE_PASSWORD: Final = "KLAMM_ZOOKEEPER_SSL_KEYSTORE_PASSWORD"  # noqa: S105  its name, not its value
"""The environment variable with the password of the private key, if that is encrypted."""

HTTPS: Final = "HTTPS"
"""The one algorithm of `zookeeper.ssl.endpoint.identification.algorithm`; any other text turns the check off."""

_TRUE: Final = "true"
_LIMIT: Final = Limit(1, "write USER:PASSWORD in one line")


@frozen
class ZooKeeperTls:
    """TLS to ZooKeeper. The files are PEM: `keystore` our key and certificate, `truststore` the authorities.

    Without a keystore we show no certificate; without a truststore the system's authorities are trusted.
    """

    keystore: str | None = None
    truststore: str | None = None
    verify_hostname: bool = True
    keystore_password: str | None = field(default=None, repr=False)

    def context(self) -> ssl.SSLContext:
        """Return what a connection is secured by. Raises StoreUnavailable if a file cannot be used."""
        try:
            context = ssl.create_default_context(cafile=self.truststore)
        except OSError as error:
            raise _unusable("truststore", self.truststore, error) from None
        context.check_hostname = self.verify_hostname
        try:
            if self.keystore is not None:
                context.load_cert_chain(self.keystore, password=lambda: self.keystore_password or "")
        except OSError as error:
            raise _unusable("keystore", self.keystore, error) from None
        return context


def _unusable(store: str, path: str | None, error: OSError) -> StoreUnavailable:
    reason = "no PEM file with what it needs" if isinstance(error, ssl.SSLError) else error.strerror
    return StoreUnavailable(f"zookeeper.ssl.{store}.location: cannot use {path}: {reason}")


@frozen
class ZooKeeperSecurity:
    """How a session is secured. `credentials` is USER:PASSWORD for the scheme `digest`."""

    credentials: str | None = field(default=None, repr=False)
    set_acl: bool = False
    tls: ZooKeeperTls | None = None


OPEN: Final = ZooKeeperSecurity()
"""No identity, no ACLs, no TLS."""


def security_of(settings: SecuritySettings, environment: Mapping[str, str] = os.environ) -> ZooKeeperSecurity:
    """Return what a service's settings ask for, with the secrets that they do not hold.

    Raises StoreUnavailable if they contradict each other or a file cannot be read, in one line with the cure.
    """
    tls = None
    if settings.zookeeper_ssl_client_enable:
        tls = ZooKeeperTls(
            settings.zookeeper_ssl_keystore_location,
            settings.zookeeper_ssl_truststore_location,
            settings.zookeeper_ssl_endpoint_identification_algorithm.upper() == HTTPS,
            environment.get(KEYSTORE_PASSWORD),
        )
    credentials = _credentials(settings.zookeeper_credentials_file, environment)
    if settings.zookeeper_set_acl and credentials is None and (tls is None or tls.keystore is None):
        raise StoreUnavailable(
            f"zookeeper.set.acl needs an identity: name zookeeper.credentials.file, or set {CREDENTIALS}"
        )
    return ZooKeeperSecurity(credentials, settings.zookeeper_set_acl, tls)


def security_of_environment(environment: Mapping[str, str] = os.environ) -> ZooKeeperSecurity:
    """Return what the environment asks for, `KLAMM_ZOOKEEPER_SSL_CLIENT_ENABLE=true` say; see `security_of`."""
    texts = {field.name: environment.get(f"KLAMM_{field.name.upper()}") for field in fields(SecuritySettings)}
    given: dict[str, Any] = {name: text for name, text in texts.items() if text}
    for name in sorted(given.keys() & {"zookeeper_set_acl", "zookeeper_ssl_client_enable"}):
        given[name] = given[name] == _TRUE
    return security_of(SecuritySettings(**given), environment)


def _credentials(path: str | None, environment: Mapping[str, str]) -> str | None:
    if path is None:
        text, where = environment.get(CREDENTIALS), CREDENTIALS
        if text is None:
            return None
    else:
        try:
            text, where = read_text(Path(path), _LIMIT), path
        except UnreadableFile as error:
            raise StoreUnavailable(f"zookeeper.credentials.file: cannot read {error}") from None
    user, colon, password = text.strip().partition(":")
    if not (user and colon and password):
        raise StoreUnavailable(f"{where} does not hold credentials for ZooKeeper: write USER:PASSWORD in one line")
    return text.strip()
