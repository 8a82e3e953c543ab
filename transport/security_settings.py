"""The settings of every service that are about ZooKeeper's own security, under Kafka's names where Kafka has them."""

from __future__ import annotations

from attrs import frozen

from transport.settings import setting


@frozen(kw_only=True)
class SecuritySettings:
    """Who we are to ZooKeeper, what others may do with our znodes, and TLS; `transport.store.security` acts on them."""

    zookeeper_set_acl: bool = setting(
        default=False, doc="Whether only our identity may change what we create in ZooKeeper."
    )
    zookeeper_credentials_file: str | None = setting(
        None, "A file with USER:PASSWORD for ZooKeeper; else KLAMM_ZOOKEEPER_CREDENTIALS in the environment."
    )
    zookeeper_ssl_client_enable: bool = setting(default=False, doc="Whether to connect to ZooKeeper with TLS.")
    zookeeper_ssl_keystore_location: str | None = setting(
        None, "A PEM file with the key and certificate to show to ZooKeeper."
    )
    zookeeper_ssl_truststore_location: str | None = setting(
        None, "A PEM file with the authorities to trust; without it the system's."
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = setting(
        "HTTPS", "How the name in ZooKeeper's certificate is checked; NONE: not at all."
    )
