"""The security of ZooKeeper: our identity (digest, or SASL), the ACLs of our znodes, and TLS.

As in Kafka, `zookeeper.set.acl` lets only the creator's identity change a znode, and everybody read it. The exceptions
are `/config/brokers`, `/config/users` and `/delegation_token`, which others may not even read, and `/consumers`, which
stays open. All brokers and controllers of a cluster need the same identity, because they write below each other's
znodes.

Where Kafka has a JAAS file and Java key stores, this module has a file with `USER:PASSWORD` and PEM files. No secret is
a setting, which a command line or a log would show: secrets come from a file or the environment.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import field, fields, frozen

from transport.input_files import Limit, UnreadableFile, read_text
from transport.service_settings import SecuritySettings
from transport.store.protocol import StoreUnavailable

CREDENTIALS: Final = "KLAMM_ZOOKEEPER_CREDENTIALS"
"""The environment variable with USER:PASSWORD."""

KEYSTORE_PASSWORD: Final = "KLAMM_ZOOKEEPER_SSL_KEYSTORE_PASSWORD"  # noqa: S105  its name, not its value
"""The environment variable with the password of the private key, if it is encrypted."""

HTTPS: Final = "HTTPS"
"""The only algorithm of `zookeeper.ssl.endpoint.identification.algorithm`; any other text turns the check off."""

_TRUE: Final = "true"
_BOOLEANS: Final = {"zookeeper_sasl_client", "zookeeper_set_acl", "zookeeper_ssl_client_enable"}
_LIMIT: Final = Limit(1, "write USER:PASSWORD in one line")


@frozen
class ZooKeeperTls:
    """TLS to ZooKeeper, with PEM files: `keystore` has our key and certificate, `truststore` the authorities.

    Without a keystore there is no client certificate; without a truststore the system's authorities are trusted.
    """

    keystore: str | None = None
    truststore: str | None = None
    verify_hostname: bool = True
    keystore_password: str | None = field(default=None, repr=False)

    def context(self) -> ssl.SSLContext:
        """Return the SSL context for connections. Raises StoreUnavailable if a file cannot be used."""
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
    """The security of a session. `credentials` is USER:PASSWORD for the scheme `digest` or, with `sasl`, for SASL."""

    credentials: str | None = field(default=None, repr=False)
    set_acl: bool = False
    sasl: bool = False
    tls: ZooKeeperTls | None = None


OPEN: Final = ZooKeeperSecurity()
"""No identity, no ACLs, no TLS."""


def security_of(settings: SecuritySettings, environment: Mapping[str, str] = os.environ) -> ZooKeeperSecurity:
    """Return the security that a service's settings ask for, with the secrets from files or the environment.

    Raises StoreUnavailable, with a one-line message, if settings contradict each other or a file cannot be read.
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
    if settings.zookeeper_sasl_client and credentials is None:
        raise StoreUnavailable(
            f"zookeeper.sasl.client needs credentials: name zookeeper.credentials.file, or set {CREDENTIALS}"
        )
    return ZooKeeperSecurity(credentials, settings.zookeeper_set_acl, settings.zookeeper_sasl_client, tls)


def security_of_environment(environment: Mapping[str, str] = os.environ) -> ZooKeeperSecurity:
    """Return the security from variables such as `KLAMM_ZOOKEEPER_SSL_CLIENT_ENABLE=true`; see `security_of`."""
    texts = {field.name: environment.get(f"KLAMM_{field.name.upper()}") for field in fields(SecuritySettings)}
    given: dict[str, Any] = {name: text for name, text in texts.items() if text}
    for name in sorted(given.keys() & _BOOLEANS):
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
