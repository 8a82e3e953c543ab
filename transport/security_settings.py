"""Settings of every service for ZooKeeper's own security, under Kafka's names where Kafka has them."""

from __future__ import annotations

from attrs import frozen

from transport.settings import setting


@frozen(kw_only=True)
class SecuritySettings:
    """The identity for ZooKeeper, the ACLs of new znodes, and TLS; `transport.store.security` acts on them."""

    zookeeper_set_acl: bool = setting(
        default=False, doc="Whether only our own identity may change the znodes that we create."
    )
    zookeeper_credentials_file: str | None = setting(
        None, "A file with USER:PASSWORD for ZooKeeper; unset, the variable KLAMM_ZOOKEEPER_CREDENTIALS."
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
