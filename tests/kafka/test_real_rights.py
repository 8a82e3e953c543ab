"""The table of rights in docs/kafka_clusters.md, whole, on a node of Apache Kafka with an authorizer and logins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import trio
from attrs import frozen
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from controller.admin.opening import open_admin
from controller.admin.visibility import PROBE, Visibility
from tests.kafka import jars
from tests.kafka.cluster_security import AUTHORIZER, MODULES, password_of, write_properties
from tests.kafka.kraft_cluster import RELEASE, kraft_cluster
from tests.kafka.real_brokers import real_broker
from tests.kafka.real_cluster import until
from tests.kafka.releases import require_jars
from tests.kafka.rights_matrix import USERS, cells, run_row
from transport import addresses
from transport.network import TcpNetwork
from transport.security.settings import read_security
from transport.wire.secured import secured
from transport.zookeeper_server import HOST, free_port

pytestmark = pytest.mark.real_kafka

LOGINS: Final = "LOGINS"
"""The listener of the users. That of the node itself is in the open, and may do everything."""

NAMES: Final = dict(zip(USERS, ("nothing", "topic", "topics", "cluster", "everything"), strict=True))
"""The names with which users log in."""

OF_KRAFT: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
MECHANISM: Final = "PLAIN"
PROTOCOLS: Final = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGINS:SASL_PLAINTEXT"


@frozen
class Guarded:
    """A node with an authorizer, where users log in at a port, and a folder for their files."""

    open: str
    guarded: str
    folder: Path

    def at(self, user: str) -> tuple[str, str, str, str]:
        """Return the options with which a user finds the node."""
        return ("--bootstrap-server", self.guarded, "--command-config", str(self.config(user)))

    def config(self, user: str) -> Path:
        """Return the client.properties of a user."""
        name = NAMES[user]
        login = f'{MODULES}.plain.PlainLoginModule required username="{name}" password="{password_of(name)}";'
        settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": MECHANISM, "sasl.jaas.config": login}
        return write_properties(self.folder / f"{name}.properties", settings)


def settings_with(authorizer: str) -> dict[str, str]:
    """Return the settings of a node with an authorizer."""
    users = " ".join(f'user_{name}="{password_of(name)}"' for name in NAMES.values())
    return {
        "authorizer.class.name": authorizer,
        "super.users": "User:ANONYMOUS",
        "listener.security.protocol.map": PROTOCOLS,
        "sasl.enabled.mechanisms": MECHANISM,
        f"listener.name.{LOGINS.lower()}.plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required {users};",
    }


@asynccontextmanager
async def kraft(_: str, folder: Path, port: int) -> AsyncIterator[str]:
    """Run a node under KRaft, and return where it listens in the open."""
    async with kraft_cluster(folder, 1, settings=settings_with(OF_KRAFT), listeners={LOGINS: port}) as cluster:
        yield cluster.bootstrap


@asynccontextmanager
async def with_zookeeper(zookeeper: str, folder: Path, port: int) -> AsyncIterator[str]:
    """Run a broker in ZooKeeper mode that is the controller, too, and return where it listens in the open."""
    place, open_port = folder / "broker", free_port()
    await trio.Path(place).mkdir()
    listeners = {"listeners": f"PLAINTEXT://{HOST}:{open_port},{LOGINS}://{HOST}:{port}"}
    settings: Mapping[str, str] = {**settings_with(AUTHORIZER), **listeners}
    chroot = f"{zookeeper}/{folder.name}"
    async with real_broker(jars.folder(jars.RELEASE), chroot, 1, place, settings, open_port):
        yield f"{HOST}:{open_port}"


KINDS: Final = {RELEASE: kraft, jars.RELEASE: with_zookeeper}


@pytest.fixture(params=list(KINDS))
async def node(request: pytest.FixtureRequest, zookeeper: str, tmp_path: Path) -> AsyncIterator[Guarded]:
    """Give the test a node of a kind, with two topics and the permissions of the users."""
    require_jars(request.param)
    port = free_port()
    async with KINDS[request.param](zookeeper, tmp_path, port) as bootstrap:
        await until_led(bootstrap)
        await trio.to_thread.run_sync(prepare, bootstrap)
        yield Guarded(bootstrap, f"{HOST}:{port}", tmp_path)


async def until_led(bootstrap: str) -> None:
    """Wait until the node names the controller: librdkafka looks again for one only after minutes."""
    async with open_admin(bootstrap=addresses.parse_list(bootstrap)) as admin:

        async def is_led() -> bool:
            found = await admin.read_metadata(())
            return found.controller is not None and bool(found.brokers)

        await until(is_led)


def prepare(bootstrap: str) -> None:
    """Create the topics, and permit the users what the columns of the table say."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, num_partitions=2, replication_factor=1) for name in ("orders", "secret")]
    for future in (*admin.create_topics(topics).values(), *admin.create_acls(list(permissions())).values()):
        future.result(30)


def permissions() -> Iterator[AclBinding]:
    """Yield what the users may do."""
    topic, cluster = ResourceType.TOPIC, ResourceType.BROKER
    describe, everything = AclOperation.DESCRIBE, AclOperation.ALL
    yield permitted("one topic", topic, "orders", describe)
    yield permitted("all topics", topic, "*", describe)
    yield permitted("all topics, the cluster", topic, "*", describe)
    yield permitted("all topics, the cluster", cluster, "kafka-cluster", describe)
    yield permitted("everything", topic, "*", everything)
    yield permitted("everything", cluster, "kafka-cluster", everything)


def permitted(user: str, kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    """Return the permission of a user."""
    who, allow = f"User:{NAMES[user]}", AclPermissionType.ALLOW
    return AclBinding(kind, name, ResourcePatternType.LITERAL, who, "*", operation, allow)


async def test_each_cell_of_a_real_cluster_is_that_of_the_document(node: Guarded) -> None:
    found = {
        user: {name: await run_row(name, node.folder / NAMES[user], *node.at(user)) for name in cells()}
        for user in USERS
    }
    assert found == {user: {name: row[user] for name, row in cells().items()} for user in USERS}


async def test_a_name_of_no_topic_tells_whether_all_topics_may_be_described(node: Guarded) -> None:
    seen = {}
    for user in USERS:
        network = secured(TcpNetwork(), read_security(node.config(user)), serves=False)
        async with open_admin(network=network, bootstrap=addresses.parse_list(node.guarded)) as admin:
            seen[user] = await admin.visibility({"secret": 2, PROBE[::-1]: 1}, settings=True)
    hidden = Visibility(False, {"secret": 2, PROBE[::-1]: 1}, False, False)  # noqa: FBT003  in the order of its fields
    assert seen == {
        "nothing": hidden,
        "one topic": hidden,
        "all topics": Visibility(sees_moves=False, sees_settings=False),
        "all topics, the cluster": Visibility(sees_settings=False),
        "everything": Visibility(),
    }
