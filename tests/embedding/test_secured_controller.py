"""A controller with security.config: brokers and administrators log in, and Kafka's ACLs decide what they may do."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import trio

import klamm
from tests.kit.certificates import Authority
from tests.kit.scrape import scrape
from tests.kit.secured_cluster import USERS, known_authority, let_in, network_of, properties
from tests.kit.service import Controllers, error_code, until
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.connecting import open_kafka_connection
from transport.messages import DescribeClusterRequest, ElectionType, ElectLeadersRequest
from transport.metadata import SecurityProtocol
from transport.settings import InvalidSetting
from transport.store.memory import MemoryZooKeeper
from transport.wire import Untrusted, open_connection

HOST: Final = "127.0.0.1"


@pytest.fixture
def known(tmp_path: Path) -> Authority:
    return known_authority(tmp_path / "known")


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
