"""A controller with security.config: brokers and administrators log in, and Kafka's ACLs decide what they may do."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import trio

import klamm
from tests.kit.certificates import Authority, authority
from tests.kit.scrape import scrape
from tests.kit.service import Controllers, error_code, until
from transport.acls import CLUSTER, AclEntry, Operation, Pattern, PatternType
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.connecting import open_kafka_connection
from transport.messages import DescribeClusterRequest, ElectionType, ElectLeadersRequest
from transport.metadata import SecurityProtocol
from transport.network import Network, TcpNetwork
from transport.security import scram
from transport.security.principal import Principal
from transport.security.settings import read_security
from transport.settings import InvalidSetting
from transport.store import formats, kafka_acls as acls
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import Create, MetadataStore, ensure_paths
from transport.store.scram_users import USER_CONFIGS, encode_credential, user_path
from transport.wire import Untrusted, open_connection
from transport.wire.secured import secured

HOST: Final = "127.0.0.1"
MECHANISM: Final = "SCRAM-SHA-256"
USERS: Final = ("klamm", "broker", "alice")
MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture
def known(tmp_path: Path) -> Authority:
    made = authority(tmp_path / "known")
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


async def test_who_logs_in_may_do_what_its_acls_allow(
    controllers: Controllers, memory: MemoryZooKeeper, known: Authority
) -> None:
    async with memory.session() as store:
        await let_in(store)
    config = str(properties(known, "klamm"))
    service = await controllers.start_active(security_config=config, metrics_port=0)
    codes: dict[str, list[ErrorCode]] = {}
    for user in USERS:
        opening = open_connection(network_of(known, user), HOST, service.port, client_id="me")
        async with opening as connection:
            asked = (DescribeClusterRequest(), ElectLeadersRequest(ElectionType.PREFERRED))
            codes[user] = [await error_code(connection, request) for request in asked]
    allowed, refused = ErrorCode.NONE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert codes == {"klamm": [allowed] * 2, "broker": [refused] * 2, "alice": [allowed] * 2}
    with pytest.raises(Untrusted, match="the login of alice by SCRAM-SHA-256 failed"):
        async with open_connection(network_of(known, "alice", "wrong"), HOST, service.port, client_id="me"):
            pytest.fail("let in")
    assert service.metrics_port is not None
    metrics = await scrape(service.metrics_port)
    assert metrics["kafka_controller_kafkacontroller_activecontrollercount"] == 1, "monitoring has no login"


async def test_brokers_of_kafka_log_in_too(controllers: Controllers, memory: MemoryZooKeeper, known: Authority) -> None:
    async with memory.session() as store:
        await let_in(store)
    config = str(properties(known, "klamm"))
    service = await controllers.start(security_config=config, kafka=True, inter_broker_listener_name="INTERNAL")
    assert service.node is not None
    [at] = service.node.listeners
    assert (at.name, at.protocol) == ("INTERNAL", SecurityProtocol.SASL_SSL)
    codes: dict[str, int] = {}
    await until(lambda: service.readiness().is_ready)
    for user in USERS:
        async with open_kafka_connection(network_of(known, user), HOST, at.port, client_id=user) as connection:
            request = kafka.ControlledShutdownRequest(broker_id=1, broker_epoch=1)
            answer = await connection.send(request, kafka.ControlledShutdownResponse, 3)
            codes[user] = answer.error_code
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert codes["alice"] == refused
    assert refused not in (codes["broker"], codes["klamm"])
    with pytest.raises(Untrusted, match=r"the login of alice at .* by SCRAM-SHA-256 failed"):
        async with open_kafka_connection(network_of(known, "alice", "wrong"), HOST, at.port, client_id="me"):
            pytest.fail("let in")


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (None, "No such file or directory"),
        ("security.protocol=TLS", "security.protocol is 'TLS': set it to one of"),
        ("security.protocol=SSL", "ssl.keystore.location is not set: a server with TLS needs a key"),
    ],
)
async def test_a_file_that_cannot_be_used_is_told_at_the_start(
    memory: MemoryZooKeeper, tmp_path: Path, lines: str | None, fault: str
) -> None:
    file = tmp_path / "klamm.properties"
    if lines is not None:
        file.write_text(lines)
    config = klamm.ControllerConfig(1001, security_config=str(file))
    with pytest.raises(InvalidSetting, match=rf"^security\.config: .*{fault}"), trio.fail_after(10):
        await klamm.run(config, open_store=memory.session)
