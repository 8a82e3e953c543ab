"""Clusters with SASL_SSL and Kafka's ACLs: who their users are, what these may do, and their files of properties."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.kit.certificates import Authority, authority
from transport.acls import CLUSTER, AclEntry, Operation, Pattern, PatternType
from transport.network import Network, TcpNetwork
from transport.security import scram
from transport.security.principal import Principal
from transport.security.settings import read_security
from transport.store import formats, kafka_acls as acls
from transport.store.protocol import Create, MetadataStore, ensure_paths
from transport.store.scram_users import USER_CONFIGS, encode_credential, user_path
from transport.wire.secured import secured

HOST: Final = "127.0.0.1"
MECHANISM: Final = "SCRAM-SHA-256"
USERS: Final = ("klamm", "broker", "alice")
MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


def known_authority(directory: Path) -> Authority:
    """Make an authority, and the key of every process of the cluster."""
    made = authority(directory)
    made.issue("klamm", HOST)
    return made


def properties(known: Authority, user: str, password: str | None = None) -> Path:
    """Return the file of a process that logs in as a user, and that lets others log in."""
    login = f'{MODULE} required username="{user}" password="{password or f"{user}-secret"}";'
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": login,
        "ssl.keystore.location": known.directory / "klamm.pem",
        "ssl.truststore.location": known.certificate,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:klamm",
    }
    file = known.directory / f"{user}.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return file


def network_of(known: Authority, user: str, password: str | None = None) -> Network:
    return secured(TcpNetwork(), read_security(properties(known, user, password)), serves=False)


async def let_in(store: MetadataStore) -> None:
    """Write the users, and what they may do: the broker what brokers do, alice to describe."""
    await ensure_paths(store, [USER_CONFIGS, *acls.PERSISTENT])
    for user in USERS:
        known = scram.credential(scram.MECHANISMS[MECHANISM], f"{user}-secret", user.encode(), 4096)
        data = formats.encode_config({MECHANISM: encode_credential(known)})
        await store.multi([Create(user_path(user), data)])
    entries = [
        AclEntry(Principal("User", "broker"), is_allowed=True, host="*", operation=Operation.CLUSTER_ACTION),
        AclEntry(Principal("User", "alice"), is_allowed=True, host=HOST, operation=Operation.ALTER_CONFIGS),
        AclEntry(Principal("User", "alice"), is_allowed=True, host=HOST, operation=Operation.ALTER),
    ]
    path = acls.path_of(Pattern(PatternType.LITERAL, CLUSTER))
    await store.multi([Create(path, acls.encode_entries(entries))])
