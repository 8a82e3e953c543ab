"""The security of clusters of real brokers: certificates, users, what they may do, and the settings of each process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from attrs import frozen

from tests.kit.certificates import Authority, as_pkcs12
from transport.acls import AclEntry, Operation
from transport.metadata import SecurityProtocol
from transport.network import Network, TcpNetwork
from transport.security import scram
from transport.security.principal import USER, Principal
from transport.security.settings import read_security
from transport.store import formats, kafka_acls as acls
from transport.store.protocol import ANY_VERSION, Create, MetadataStore, Set, ensure_paths
from transport.store.scram_users import USER_CONFIGS, encode_credential, user_path
from transport.wire.secured import secured
from transport.zookeeper_server import HOST

MECHANISM: Final = "SCRAM-SHA-512"
MODULES: Final = "org.apache.kafka.common.security"
STORE_PASSWORD: Final = "of-the-store"  # noqa: S105  of files that live as long as a test
AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
CONTROLLER, BROKER, CLIENT, ADMIN = "klamm", "broker", "alice", "admin"
USERS: Final = (CONTROLLER, BROKER, CLIENT, ADMIN)
CLUSTER: Final = "Cluster/kafka-cluster"
OF_CONTROLLERS: Final = (Operation.CLUSTER_ACTION, Operation.DESCRIBE_CONFIGS, Operation.DESCRIBE)
RESOURCES: Final = ("Topic/*", "Group/*", "TransactionalId/*")
"""The resources that a client of the cluster may use."""


def login_module(user: str, password: str) -> str:
    """Return the value of sasl.jaas.config for a user of SCRAM."""
    return f'{MODULES}.scram.ScramLoginModule required username="{user}" password="{password}";'


def password_of(user: str) -> str:
    """Return the password of a user of a cluster."""
    return f"{user}-secret"


def write_properties(file: Path, settings: Mapping[str, object]) -> Path:
    """Write a file of properties, and return it."""
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return file


def java_tls(known: Authority, keys: Path) -> dict[str, str]:
    """Return the settings of a broker that shows a certificate, and trusts those of an authority."""
    return {
        "ssl.keystore.location": str(as_pkcs12(keys, STORE_PASSWORD)),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        "ssl.truststore.location": str(known.certificate),
        "ssl.truststore.type": "PEM",
    }


async def add_scram_user(store: MetadataStore, user: str, password: str) -> None:
    """Write the credential of a user of SCRAM."""
    await ensure_paths(store, [USER_CONFIGS])
    known = scram.credential(scram.MECHANISMS[MECHANISM], password, user.encode(), 4096)
    await store.multi([Create(user_path(user), formats.encode_config({MECHANISM: encode_credential(known)}))])


async def permit(store: MetadataStore, resource: str, operation: Operation, *principals: Principal) -> None:
    """Let just these principals perform an operation, and no other one, on a resource such as Topic/*."""
    await write_acl(store, resource, *((who, operation) for who in principals))


async def write_acl(store: MetadataStore, resource: str, *permitted: tuple[Principal, Operation]) -> None:
    """Write all that is permitted on a resource, and announce it."""
    kind, _, name = resource.partition("/")
    await ensure_paths(store, [*acls.PERSISTENT, f"/kafka-acl/{kind}"])
    entries = [AclEntry(who, is_allowed=True, host=HOST, operation=operation) for who, operation in permitted]
    path, data = f"/kafka-acl/{resource}", acls.encode_entries(entries)
    [there] = await store.read([path])
    written = Create(path, data) if there is None else Set(path, data, ANY_VERSION)
    await store.multi([written, Create(f"{acls.CHANGES}/acl_changes_", f"{kind}:{name}".encode(), sequence=True)])


@frozen
class ClusterSecurity:
    """The security of all processes of a cluster: SASL_SSL with SCRAM, or SSL with certificates on both ends."""

    protocol: SecurityProtocol
    known: Authority

    @property
    def has_sasl(self) -> bool:
        """Whether passwords prove who somebody is; if not, certificates do."""
        return self.protocol is SecurityProtocol.SASL_SSL

    def principal(self, user: str) -> Principal:
        """Return the principal as which brokers and controllers know a user."""
        return Principal(USER, user if self.has_sasl else f"CN={user}")

    def keys(self, user: str) -> Path:
        """Return the key of a user with its certificate; they are made when they are asked for first."""
        made = self.known.directory / f"{user}.pem"
        return made if made.exists() else self.known.issue(user, HOST)

    def of_broker(self, *listeners: str) -> dict[str, str]:
        """Return the settings of a broker for listeners of these names."""
        protocols = ",".join(f"{name}:{self.protocol.name}" for name in listeners)
        settings = {
            "listener.security.protocol.map": protocols,
            "authorizer.class.name": AUTHORIZER,
            "super.users": str(self.principal(ADMIN)),
            **java_tls(self.known, self.keys(BROKER)),
        }
        if not self.has_sasl:
            return settings | {"ssl.client.auth": "required"}
        login = login_module(BROKER, password_of(BROKER))
        prefixes = [f"listener.name.{name.lower()}.{MECHANISM.lower()}" for name in listeners]
        return {
            **settings,
            **{f"{prefix}.sasl.jaas.config": login for prefix in prefixes},
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "sasl.enabled.mechanisms": MECHANISM,
        }

    def of_controller(self, **changes: object) -> Path:
        """Return the file that is the security.config of a controller; in names of changes, `_` stands for a dot."""
        return self._properties(
            CONTROLLER,
            {
                "authorizer.class.name": AUTHORIZER,
                "super.users": self.principal(ADMIN),
                "ssl.client.auth": "none" if self.has_sasl else "required",
                **{name.replace("_", "."): value for name, value in changes.items()},
            },
            "server",
        )

    def network_of(self, user: str) -> Network:
        """Return the network of a user."""
        return secured(TcpNetwork(), read_security(self._properties(user, {}, "client")), serves=False)

    def of_client(self) -> dict[str, str]:
        """Return the settings with which librdkafka connects as the cluster's only client."""
        settings = {"security.protocol": self.protocol.name, "ssl.ca.location": str(self.known.certificate)}
        if self.has_sasl:
            names = {"username": CLIENT, "password": password_of(CLIENT), "mechanism": MECHANISM}
            return settings | {f"sasl.{name}": value for name, value in names.items()}
        keys = str(self.keys(CLIENT))
        return settings | {"ssl.certificate.location": keys, "ssl.key.location": keys}

    def of_tools(self, directory: Path, user: str, **changes: object) -> Path:
        """Return the file with which Kafka's tools connect as a user; in names of changes, `_` stands for a dot."""
        settings: dict[str, object] = {"security.protocol": self.protocol.name}
        if self.has_sasl:
            settings |= {"sasl.mechanism": MECHANISM, "sasl.jaas.config": login_module(user, password_of(user))}
        changed = {name.replace("_", "."): value for name, value in changes.items()}
        settings |= java_tls(self.known, self.keys(user)) | changed
        return write_properties(directory / f"{user}.properties", settings)

    async def let_in(self, store: MetadataStore) -> None:
        """Write the users, and what they may do: the controller and the brokers no more than the documentation asks."""
        if self.has_sasl:
            for user in USERS:
                await add_scram_user(store, user, password_of(user))
        ours = [(self.principal(CONTROLLER), operation) for operation in OF_CONTROLLERS]
        await write_acl(store, CLUSTER, *ours, (self.principal(BROKER), Operation.CLUSTER_ACTION))
        for resource in RESOURCES:
            await permit(store, resource, Operation.ALL, self.principal(CLIENT))

    def _properties(self, user: str, more: Mapping[str, object], end: str) -> Path:
        settings: dict[str, object] = {
            "security.protocol": self.protocol.name,
            "ssl.keystore.location": self.keys(user),
            "ssl.truststore.location": self.known.certificate,
        }
        if self.has_sasl:
            settings |= {
                "sasl.mechanism": MECHANISM,
                "sasl.jaas.config": login_module(user, password_of(user)),
            }
        return write_properties(self.known.directory / f"{user}-{end}.properties", settings | dict(more))
