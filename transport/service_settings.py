"""The settings that every service has: ZooKeeper's security, the advertised address, the wait for ZooKeeper."""

from __future__ import annotations

import ipaddress
import math
import re
import socket
from contextlib import suppress
from typing import Final

from attrs import frozen

from transport.settings import InvalidSetting, setting

_NAME: Final = re.compile(r"[\w-]+(\.[\w-]+)*\.?")
"""A host name that a resolver can look up, in letters of any alphabet."""


@frozen(kw_only=True)
class SecuritySettings:
    """The identity for ZooKeeper, the ACLs of new znodes, and TLS; `transport.store.security` acts on them."""

    zookeeper_set_acl: bool = setting(
        default=False, doc="Whether only our own identity may change the znodes that we create."
    )
    zookeeper_credentials_file: str | None = setting(
        None, "A file with USER:PASSWORD for ZooKeeper; unset, the variable KLAMM_ZOOKEEPER_CREDENTIALS."
    )
    zookeeper_sasl_client: bool = setting(
        default=False,
        doc="Whether these credentials are for SASL (DIGEST-MD5), as those of Kafka's brokers are.",
    )
    zookeeper_ssl_client_enable: bool = setting(default=False, doc="Whether to connect to ZooKeeper with TLS.")
    zookeeper_ssl_keystore_location: str | None = setting(
        None, "A PEM file with the private key and the client certificate."
    )
    zookeeper_ssl_truststore_location: str | None = setting(
        None, "A PEM file with the authorities to trust; unset, those of the system."
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = setting(
        "HTTPS", "The check of the name in ZooKeeper's certificate; NONE for no check."
    )


@frozen(kw_only=True)
class ServiceSettings(SecuritySettings):
    """The security of a service's connections, the address that it advertises, and its wait for ZooKeeper."""

    security_config: str | None = setting(
        None, "A file with the security of connections, in the form of Kafka's client.properties; unset, none."
    )
    advertised_host: str | None = setting(
        None, "The address to advertise instead of host; required if host is 0.0.0.0."
    )
    advertised_port: int | None = setting(None, "The port to advertise instead of port.", at_least=1, at_most=65_535)
    zookeeper_connection_timeout_ms: int | None = setting(
        None, "The limit of the wait for ZooKeeper at the start; unset, no limit.", at_least=1
    )

    @property
    def zookeeper_patience(self) -> float:
        """The longest wait for ZooKeeper at the start, in seconds."""
        milliseconds = self.zookeeper_connection_timeout_ms
        return math.inf if milliseconds is None else milliseconds / 1000

    def advertised(self, host: str, port: int) -> tuple[str, int]:
        """Return the host and port that a service advertises if it listens on `host` and `port`.

        Raises InvalidSetting for an advertised host that is neither a name nor an address and, as in Kafka, for a
        wildcard address such as 0.0.0.0, which others cannot use.
        """
        if self.advertised_host is not None and not _is_host(self.advertised_host):
            raise InvalidSetting(
                f"{self.advertised_host!r:.200} is neither a host name nor an address:"
                " set advertised.host to one of these, and advertised.port to the port"
            )
        told = self.advertised_host or host
        if _is_wildcard(told):
            raise InvalidSetting(f"{told} is a wildcard address, which others cannot connect to: set advertised.host")
        return told, self.advertised_port or port


def _is_host(text: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(text))
    return _NAME.fullmatch(text) is not None


def _is_wildcard(host: str) -> bool:
    with suppress(OSError, UnicodeError):
        return not any(socket.inet_aton(host))  # 0.0.0.0, or 0 for short
    with suppress(OSError, UnicodeError):
        return not any(socket.inet_pton(socket.AF_INET6, host))
    return False
