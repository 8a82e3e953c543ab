"""A broker and a controller that do not trust each other: a line says why, and no connection is left half open.

The broker of this test has TLS and SASL for its controller, and no security for clients, through whom the test has it
ask for ids of producers: for these it connects to the controller.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from struct import pack, unpack_from
from typing import Any, Final

import pytest
import trio
from attrs import frozen
from structlog.testing import capture_logs
from structlog.typing import EventDict

import klamm
from controller.node.service import ControllerService
from tests.kafka.cluster_security import (
    BROKER,
    CLUSTER,
    CONTROLLER,
    MECHANISM,
    ClusterSecurity,
    add_scram_user,
    login_module,
    password_of,
    permit,
    write_acl,
)
from tests.kafka.real_brokers import RealBroker, real_broker
from tests.kafka.real_cluster import until
from tests.kafka.tcp_table import connections
from tests.kit.certificates import authority, short_lived
from tests.kit.kafka_registrations import begin_cluster
from tests.kit.ports import free_ports
from transport.acls import Operation
from transport.errors import ErrorCode
from transport.host import Host
from transport.kafka import messages as kafka
from transport.kafka.connecting import open_kafka_connection
from transport.metadata import SecurityProtocol
from transport.network import TcpNetwork
from transport.security.principal import ANONYMOUS
from transport.store.protocol import ANY_VERSION, Delete, MetadataStore
from transport.store.scram_users import user_path
from transport.store.zookeeper import open_zookeeper
from transport.wire.frame_stream import FrameStream
from transport.wire.frames import frame
from transport.zookeeper_server import HOST

INIT_PRODUCER_ID: Final = 22
STOPPED_BY_SIGTERM: Final = 143
VALID_MS: Final = 60_000
"""How long a certificate is valid: the broker has to start meanwhile."""

LOADING: Final = 14
"""The error COORDINATOR_LOAD_IN_PROGRESS, while the broker has no ids from the controller."""

PROBLEMS: Final = {"warning", "error", "critical"}
LOGIN_REFUSED: Final = "connection closed: the client did not log in"
AGAIN: Final = "trying again"
NO_TLS: Final = "connection closed: no TLS with the client"
NO_PERMISSION: Final = "a broker's request is refused"
WRONG: Final = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-512"
)


@frozen
class Lab:
    """A broker, and the address at which the controllers of the test listen for it, one after another."""

    broker: RealBroker
    security: ClusterSecurity
    store: MetadataStore
    address: str
    clients: int
    """The broker's port for clients."""

    port: int
    """The controllers' port for the broker."""

    @asynccontextmanager
    async def controller(self, **changes: object) -> AsyncIterator[list[EventDict]]:
        """Run a controller whose settings have changes, and give its log. At the end it has no connection left."""
        file = str(self.security.of_controller(**changes))
        listeners = f"INTERNAL://{HOST}:{self.port}"
        async with in_office(self.address, listeners=listeners, security_config=file) as logs:
            yield logs
        await self.until_without_connections()

    async def permit(self, *users: str) -> None:
        """Let just these users give orders or ask for ISRs; a controller may always read settings."""
        may = self.security.principal
        reading = may(CONTROLLER), Operation.DESCRIBE_CONFIGS
        await write_acl(self.store, CLUSTER, reading, *((may(user), Operation.CLUSTER_ACTION) for user in users))

    async def until_without_connections(self) -> None:
        """Wait until neither end has a connection with the other; each closes its own, the broker a moment later."""
        broker, ours = (self.broker.port, self.broker.process.pid), (self.port, os.getpid())
        await until(lambda: _now(connections(*broker) + connections(*ours) == 0))

    async def producer_id(self) -> int:
        """Ask the broker for the id of a producer; -1 while it has none from the controller."""
        stream = await trio.open_tcp_stream(HOST, self.clients)
        async with stream:
            asked = pack(">hhihhi", INIT_PRODUCER_ID, 0, 1, -1, -1, 1_000)
            await stream.send_all(frame(asked))
            answer = await FrameStream(stream).receive()
        assert answer is not None
        error, found = unpack_from(">hq", answer, 8)
        assert error in (ErrorCode.NONE, LOADING)
        return int(found)

    async def has_producer_id(self) -> bool:
        return await self.producer_id() >= 0

    async def start_again(self, logs: list[EventDict]) -> None:
        """Start the broker again, wait until it knows the controller, and forget what has been logged until then."""
        await self.broker.start()
        await until(self.knows_controller)
        logs.clear()

    async def knows_controller(self) -> bool:
        """Return whether the broker tells clients of a controller."""
        async with open_kafka_connection(TcpNetwork(), HOST, self.clients, client_id="test") as connection:
            version = connection.version_of(kafka.MetadataRequest)
            answer = await connection.send(kafka.MetadataRequest(topics=None), kafka.MetadataResponse, version)
        return answer.controller_id >= 0

    async def shut_down(self, fault: str) -> None:
        """Stop the broker, whose controlled shutdown fails; its own log names the fault."""
        assert await self.broker.terminate() == STOPPED_BY_SIGTERM
        log = self.broker.log.read_text()
        assert fault in log
        assert "Controlled shutdown request returned successfully" not in log


@asynccontextmanager
async def in_office(address: str, **options: Any) -> AsyncIterator[list[EventDict]]:
    """Run a controller until the end of the block, and give its log; it is in office when the block begins."""
    own: Any = {"zookeeper_connect": address, "inter_broker_listener_name": "INTERNAL"}
    config = klamm.ControllerConfig(1001, kafka=True, **own, **options)
    async with open_zookeeper(address) as store:
        await begin_cluster(store)
    async with trio.open_nursery() as nursery:
        with capture_logs() as logs:
            service: ControllerService = await nursery.start(klamm.run, config)
            await until(lambda: _now(service.is_active))
            yield logs
            nursery.cancel_scope.cancel()


def lines_of(logs: list[EventDict], event: str) -> list[EventDict]:
    return [line for line in logs if line["event"] == event]


def require_only(logs: list[EventDict], event: str, reason: str) -> None:
    """Require that no line tells of another problem, and show one."""
    lines = [line for line in logs if line["log_level"] in PROBLEMS]
    assert {(line["event"], line.get("reason")) for line in lines} == {(event, reason)}
    sys.stdout.write(f"{event}: {reason}\n")


def require_none(logs: list[EventDict]) -> None:
    """Require that no line tells of a problem."""
    assert [line for line in logs if line["log_level"] in PROBLEMS] == []


async def _now(value: object) -> bool:
    await trio.lowlevel.checkpoint()
    return bool(value)


def settings_of_broker(security: ClusterSecurity, port: int, clients: int) -> dict[str, str]:
    return {
        **security.of_broker("INTERNAL"),
        "listeners": f"INTERNAL://{HOST}:{port},EXTERNAL://{HOST}:{clients}",
        "listener.security.protocol.map": f"INTERNAL:{security.protocol.name},EXTERNAL:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "listener.name.internal.ssl.client.auth": "requested" if security.has_sasl else "required",
        "controlled.shutdown.retry.backoff.ms": "200",
    }


@asynccontextmanager
async def laboratory(jars: Path, zookeeper: str, security: ClusterSecurity, directory: Path) -> AsyncIterator[Lab]:
    """Run a broker, whose controllers are not permitted to give orders yet."""
    address = f"{zookeeper}/trust-{directory.name}"
    port, clients, controllers = free_ports(3)
    async with open_zookeeper(address) as store:
        for user in (CONTROLLER, BROKER):
            await add_scram_user(store, user, password_of(user))
        await permit(store, "Topic/*", Operation.WRITE, ANONYMOUS)
        await permit(store, CLUSTER, Operation.DESCRIBE_CONFIGS, security.principal(CONTROLLER))
        settings = settings_of_broker(security, port, clients)
        # A broker that starts first would elect itself, and none of our controllers would take its office.
        async with in_office(address):
            pass
        async with real_broker(jars, address, 1, directory, settings, port) as running:
            yield Lab(running, security, store, address, clients, controllers)


@pytest.fixture
async def lab(kafka_jars: Path, zookeeper: str, tmp_path: Path) -> AsyncIterator[Lab]:
    """Give the test a broker that has a password, as its controllers have."""
    security = ClusterSecurity(SecurityProtocol.SASL_SSL, authority(tmp_path / "known"))
    async with laboratory(kafka_jars, zookeeper, security, tmp_path) as running:
        yield running


async def test_no_trust_ends_in_a_line_at_both_ends(lab: Lab) -> None:
    await a_controller_logs_in_wrongly(lab)
    await a_controller_needs_cluster_action(lab)
    await lab.permit(CONTROLLER)
    async with lab.controller() as logs:
        await a_broker_needs_cluster_action(lab, logs)
        # From here on the password in the broker's settings is not the one that it should have.
        await lab.store.multi([Delete(user_path(BROKER), ANY_VERSION)])
        await add_scram_user(lab.store, BROKER, "another-secret")
        logs.clear()
        await a_broker_logs_in_wrongly(lab, logs)


async def a_controller_logs_in_wrongly(lab: Lab) -> None:
    for user, password in ((CONTROLLER, "wrong-secret"), ("mallory", password_of(CONTROLLER))):
        async with lab.controller(sasl_jaas_config=login_module(user, password)) as logs:
            await until(lambda: _now(lines_of(logs, AGAIN)))
            told = f"the login of {user} at {HOST}:{lab.broker.port} by {MECHANISM} failed ({WRONG})"
            require_only(logs, AGAIN, f"{told}: check sasl.jaas.config")


async def a_controller_needs_cluster_action(lab: Lab) -> None:
    async with lab.controller() as logs:
        await until(lambda: _now(lines_of(logs, AGAIN)))
        told = "the broker does not let us give orders: our principal needs ClusterAction on the cluster, or has to be"
        require_only(logs, AGAIN, f"{told} one of its super.users")


async def a_broker_needs_cluster_action(lab: Lab, logs: list[EventDict]) -> None:
    async def is_refused() -> bool:
        assert await lab.producer_id() == -1
        return bool(lines_of(logs, NO_PERMISSION))

    await until(is_refused)
    told = f"{lab.security.principal(BROKER)} needs ClusterAction on the cluster: ask who runs the cluster"
    require_only(logs, NO_PERMISSION, told)
    await lab.permit(CONTROLLER, BROKER)
    await until(lab.has_producer_id)


async def a_broker_logs_in_wrongly(lab: Lab, logs: list[EventDict]) -> None:
    """Shut the broker down, for which it logs in; if it asked for ids of producers, the refusal would end it."""
    await lab.shut_down("The user name or the password is wrong")
    require_only(logs, LOGIN_REFUSED, f"the password is wrong, or there is no user {BROKER!r}")


@pytest.mark.soak
async def test_what_expires_or_is_removed_is_not_trusted_any_more(lab: Lab) -> None:
    await lab.permit(CONTROLLER, BROKER)
    async with lab.controller() as logs:
        await until(lab.knows_controller)
        logs.clear()
        await lab.store.multi([Delete(user_path(BROKER), ANY_VERSION)])
        await a_broker_logs_in_wrongly(lab, logs)
        await lab.start_again(logs)
    expired = lab.security.known.issue("late", HOST, days=-1)
    async with lab.controller(ssl_keystore_location=expired) as logs:
        await until(lambda: _now(lines_of(logs, AGAIN)))
        told = "it refuses our certificate (it is not accepted there): check ssl.keystore.location"
        require_only(logs, AGAIN, f"cannot connect to {HOST}:{lab.broker.port}: {told}")
        logs.clear()
        await lab.shut_down("SSL handshake failed")
        lines = lines_of(logs, NO_TLS)
        require_only(lines, NO_TLS, told)


@pytest.mark.soak
async def test_a_brokers_certificate_expires(kafka_jars: Path, zookeeper: str, tmp_path: Path) -> None:
    """Both ends show certificates, and the broker's is still valid when it starts."""
    host, security = Host(), ClusterSecurity(SecurityProtocol.SSL, authority(tmp_path / "known"))
    end_ms = host.now_ms() + VALID_MS
    short_lived(security.known, BROKER, HOST, until_ms=end_ms)
    async with laboratory(kafka_jars, zookeeper, security, tmp_path) as lab:
        await lab.permit(CONTROLLER, BROKER)
        async with lab.controller() as logs:
            await until(lab.knows_controller)
            require_none(logs)
        await until(lambda: _now(host.now_ms() > end_ms))
        async with lab.controller() as logs:
            await until(lambda: _now(lines_of(logs, AGAIN)))
            told = f"cannot connect to {HOST}:{lab.broker.port}: its certificate has expired"
            require_only(logs, AGAIN, told)
            logs.clear()
            await lab.shut_down("SSL handshake failed")
            require_only(lines_of(logs, NO_TLS), NO_TLS, "its certificate has expired")
