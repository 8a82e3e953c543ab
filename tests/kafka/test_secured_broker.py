"""A real broker of Apache Kafka with SASL_SSL and ACLs: our client logs in, or is told in one line why it cannot."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import trio
from attrs import frozen

import klamm
from tests.kafka.cluster_security import (
    AUTHORIZER,
    CLUSTER,
    MECHANISM,
    MODULES,
    add_scram_user,
    java_tls,
    login_module,
    permit,
    write_properties,
)
from tests.kafka.real_brokers import RealBroker, real_broker
from tests.kafka.tcp_table import connections
from tests.kit.certificates import Authority, authority
from tests.kit.kafka_registrations import begin_cluster
from transport.acls import Operation
from transport.kafka import messages as kafka
from transport.kafka.channel import BrokerConnection
from transport.kafka.client import KafkaConnection
from transport.messages import BrokerEndpoint, UpdateMetadataRequest
from transport.network import TcpNetwork
from transport.security import scram
from transport.security.errors import SecurityError
from transport.security.network import TlsNetwork
from transport.security.principal import Principal
from transport.security.settings import security_of
from transport.store.protocol import MetadataStore
from transport.store.scram_users import ScramUsers
from transport.store.zookeeper import open_zookeeper
from transport.wire.errors import Untrusted, WireError
from transport.zookeeper_server import HOST

USERS: Final = {"broker": "broker-secret", "klamm": "klamm-secret", "nobody=special, *~+/": "nobody-secret"}
CONTROLLER: Final = BrokerEndpoint(1001, HOST, 1)
ORDER: Final = UpdateMetadataRequest(1001, 1_000, -1, CONTROLLER, None, ())
NO_CONTROLLER: Final = -1
LISTENER: Final = "listener.name.plaintext"
"""The broker's only listener, whose name does not say what it is."""


def settings_of_broker(known: Authority) -> dict[str, str]:
    plain_users = f'{MODULES}.plain.PlainLoginModule required user_klamm="{USERS["klamm"]}";'
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        "sasl.enabled.mechanisms": f"{MECHANISM},PLAIN",
        f"{LISTENER}.scram-sha-512.sasl.jaas.config": login_module("broker", USERS["broker"]),
        f"{LISTENER}.plain.sasl.jaas.config": plain_users,
        f"{LISTENER}.ssl.client.auth": "requested",
        **java_tls(known, known.issue("broker", HOST)),
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:broker",
    }


async def add_users(store: MetadataStore) -> None:
    for user, password in USERS.items():
        await add_scram_user(store, user, password)


async def let(store: MetadataStore, *users: str) -> None:
    """Let users do what controllers and brokers do."""
    await permit(store, CLUSTER, Operation.CLUSTER_ACTION, *(Principal("User", user) for user in users))


@frozen
class Lab:
    """A secured broker, the authority of its certificates, and its ZooKeeper."""

    broker: RealBroker
    known: Authority
    store: MetadataStore

    def client(self, user: str, password: str, **more: str) -> dict[str, str]:
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": login_module(user, password),
            "ssl.truststore.location": str(self.known.certificate),
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    @asynccontextmanager
    async def connected(self, settings: dict[str, str]) -> AsyncIterator[KafkaConnection]:
        security = security_of(settings)
        context = security.tls.client_context() if security.has_tls else None
        stream = await TlsNetwork(TcpNetwork(), client=context).connect(HOST, self.broker.port)
        connection = KafkaConnection(stream, peer="broker-1", client_id="klamm", login=security.login)
        try:
            await connection.negotiate()
            yield connection
        finally:
            await connection.close()

    async def told(self, settings: dict[str, str]) -> str:
        """Return the line in which an attempt ends."""
        with pytest.raises((SecurityError, WireError)) as caught:
            async with self.connected(settings) as connection:
                await ask(connection)
        return str(caught.value)

    def connections(self) -> int:
        """Return the number of connections that others have with the broker, half-open ones included."""
        return connections(self.broker.port, self.broker.process.pid)


@pytest.fixture
async def lab(kafka_jars: Path, zookeeper: str, tmp_path: Path) -> AsyncIterator[Lab]:
    address, known = f"{zookeeper}/kafka-{tmp_path.name}", authority(tmp_path / "known")
    async with open_zookeeper(address) as store:
        await add_users(store)
        async with real_broker(kafka_jars, address, 1, tmp_path, settings_of_broker(known)) as running:
            yield Lab(running, known, store)


async def ask(connection: KafkaConnection) -> None:
    """Ask for what everybody may know."""
    version = connection.version_of(kafka.MetadataRequest)
    await connection.send(kafka.MetadataRequest(topics=None), kafka.MetadataResponse, version)


async def test_a_client_logs_in_at_a_secured_broker(lab: Lab) -> None:
    await require_accepted_credentials_are_read(lab.store)
    for user, password in USERS.items():
        async with lab.connected(lab.client(user, password)) as connection:
            await ask(connection)
    plain = f'{MODULES}.plain.PlainLoginModule required username="klamm" password="klamm-secret";'
    by_plain = lab.client("", "") | {"sasl.mechanism": "PLAIN", "sasl.jaas.config": plain}
    async with lab.connected(by_plain) as connection:
        await ask(connection)
        assert lab.connections() == 1
    await refusals(lab)
    # Each end closes by itself, the broker a moment later.
    with trio.fail_after(10):
        while lab.connections():
            await trio.sleep(0.05)
    await permissions(lab)


async def refusals(lab: Lab) -> None:
    wrong = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512"
    for user, password in (("klamm", "wrong-secret"), ("mallory", "klamm-secret")):
        assert await lab.told(lab.client(user, password)) == (
            f"the login of {user} at broker-1 by SCRAM-SHA-512 failed ({wrong}): check sasl.jaas.config"
        )
    plain = f'{MODULES}.plain.PlainLoginModule required username="klamm" password="wrong-secret";'
    by_plain = lab.client("", "") | {"sasl.mechanism": "PLAIN", "sasl.jaas.config": plain}
    assert "failed (Authentication failed: Invalid username or password): check" in await lab.told(by_plain)
    other = lab.client("klamm", "klamm-secret") | {"sasl.mechanism": "SCRAM-SHA-256"}
    assert await lab.told(other) == (
        "broker-1 does not offer SCRAM-SHA-256: set sasl.mechanism to one of SCRAM-SHA-512, PLAIN"
    )
    expired = str(lab.known.issue("late", HOST, days=-1))
    told = await lab.told(lab.client("klamm", "klamm-secret", ssl_keystore_location=expired))
    assert told.startswith("the connection to broker-1 broke: it refuses our certificate (")
    assert told.endswith("): check ssl.keystore.location")
    stranger = authority(lab.known.directory / "unknown")
    told = await lab.told(lab.client("klamm", "klamm-secret") | {"ssl.truststore.location": str(stranger.certificate)})
    assert told == "no authority of ssl.truststore.location has signed its certificate"
    assert await lab.told({"security.protocol": "PLAINTEXT"}) == (
        "the connection to broker-1 broke: the other end speaks TLS, and this end does not: check security.protocol"
    )


async def permissions(lab: Lab) -> None:
    """Only who has ClusterAction gives orders. Kafka reads the ACL as we write it."""
    async with lab.connected(lab.client("klamm", "klamm-secret")) as connection:
        orders = BrokerConnection(connection, lambda: ())
        with pytest.raises(Untrusted, match="our principal needs ClusterAction on the cluster"):
            await orders.call(ORDER)
        await let(lab.store, "klamm")
        with trio.fail_after(10):
            while not await may_order(orders):
                await trio.sleep(0.05)


async def may_order(orders: BrokerConnection) -> bool:
    try:
        await orders.call(ORDER)
    except Untrusted:
        return False
    return True


async def require_accepted_credentials_are_read(store: MetadataStore) -> None:
    """Require that the credentials with which a broker lets users in are those that we read."""
    users = ScramUsers(store)
    for user, password in USERS.items():
        known = await users.credential_of(MECHANISM, user)
        assert known == scram.credential(scram.MECHANISMS[MECHANISM], password, user.encode(), 4096)


async def test_a_secured_broker_lives_under_our_controller(kafka_jars: Path, zookeeper: str, tmp_path: Path) -> None:
    """Each end logs in at the other: the controller gives orders, the broker asks for its controlled shutdown."""
    address, known = f"{zookeeper}/kafka-{tmp_path.name}", authority(tmp_path / "known")
    async with open_zookeeper(address) as store:
        await add_users(store)
        await let(store, "broker")
        await begin_cluster(store)
        async with trio.open_nursery() as nursery:
            config = klamm.ControllerConfig(
                1001,
                zookeeper_connect=address,
                kafka=True,
                security_config=str(properties_of_controller(known)),
            )
            service = await nursery.start(klamm.run, config)
            with trio.fail_after(30):
                while not service.is_active:
                    await trio.sleep(0.05)
            async with real_broker(kafka_jars, address, 1, tmp_path, settings_of_broker(known)) as running:
                lab = Lab(running, known, store)
                async with lab.connected(lab.client("klamm", USERS["klamm"])) as connection:
                    # An order that is refused for want of an ACL is not lost.
                    assert await controller_of(connection) == NO_CONTROLLER
                    await let(store, "klamm", "broker")
                    with trio.fail_after(30):
                        while await controller_of(connection) != service.endpoint.id:
                            await trio.sleep(0.05)
            assert "Controlled shutdown request returned successfully" in running.log.read_text()
            nursery.cancel_scope.cancel()


def properties_of_controller(known: Authority) -> Path:
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": login_module("klamm", USERS["klamm"]),
        "ssl.keystore.location": known.issue("controller", HOST),
        "ssl.truststore.location": known.certificate,
        "authorizer.class.name": AUTHORIZER,
    }
    return write_properties(known.directory / "controller.properties", settings)


async def controller_of(connection: KafkaConnection) -> int:
    version = connection.version_of(kafka.MetadataRequest)
    answer = await connection.send(kafka.MetadataRequest(topics=None), kafka.MetadataResponse, version)
    return answer.controller_id
