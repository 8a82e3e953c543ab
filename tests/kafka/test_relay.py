"""Clients that share a listener with Kafka's brokers: what they ask the controller is passed on to a broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import trio
from attrs import define
from structlog.testing import capture_logs

from tests.kafka.cluster_security import MODULES, write_properties
from tests.kafka.scripted_broker import ANSWERS, HOST, ScriptedBroker
from tests.kafka.test_kafka_node import KAFKA, asking
from tests.kit.service import Controllers, until
from transport.errors import ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.messages.describe_configs_request import DescribeConfigsResource
from transport.kafka.messages.metadata_request import MetadataRequestTopic
from transport.kafka.messages.metadata_response import MetadataResponseBroker
from transport.kafka.relay import Relay, Upstream
from transport.kafka.schema import Message, Versions
from transport.kafka.server import serve_stream
from transport.network import TcpNetwork
from transport.security.sasl import SaslServer
from transport.security.settings import read_security
from transport.store.memory import MemoryZooKeeper
from transport.wire.errors import ConnectionBroken
from transport.wire.secured import secured

METADATA: Final = kafka.MetadataResponse(brokers=(MetadataResponseBroker(1, HOST, 9092),), controller_id=1001)
CLIENTS: Final[dict[type[Message], Message]] = {
    kafka.MetadataRequest: METADATA,
    kafka.ListGroupsRequest: kafka.ListGroupsResponse(error_code=77),
}
"""What the broker answers to clients."""

NEW: Final = kafka.MetadataRequest((MetadataRequestTopic(name="new"),))
"""A question for which a broker may create a topic."""

OF_TOPIC: Final = kafka.DescribeConfigsRequest((DescribeConfigsResource(2, "orders", None),))
KEYS_OF_OURS: Final = {3, 7, 18, 19, 20, 37, 43, 45, 46, 51, 56, 57, 60, 67}


@asynccontextmanager
async def governed(memory: MemoryZooKeeper, broker: ScriptedBroker) -> AsyncIterator[None]:
    """Run a broker until the end of the block; the controller has a connection to it when the block begins."""
    async with memory.session() as store, trio.open_nursery() as nursery:
        await broker.listen(nursery)
        await broker.register(store)
        await until(lambda: bool(broker.told(kafka.UpdateMetadataRequest)))
        yield
        nursery.cancel_scope.cancel()


async def test_a_broker_answers_what_a_controller_does_not(controllers: Controllers, memory: MemoryZooKeeper) -> None:
    service, broker = await controllers.start_active(**KAFKA), ScriptedBroker(1, answers=CLIENTS)
    async with governed(memory, broker), asking(service) as client:
        assert set(client.offered) == {16, 32, 35, 66} | KEYS_OF_OURS
        for version in range(client.version_of(kafka.MetadataRequest) + 1):
            answer = await client.send(NEW, kafka.MetadataResponse, version)
            assert [node.node_id for node in answer.brokers] == [1]
        assert len(broker.told(kafka.MetadataRequest)) == 13
        shutdown = await client.send(kafka.ControlledShutdownRequest(9, 1), kafka.ControlledShutdownResponse, 3)
        assert shutdown.error_code != 0


async def test_what_is_asked_of_each_node_is_not_answered_twice_by_a_broker(
    controllers: Controllers, memory: MemoryZooKeeper
) -> None:
    service, broker = await controllers.start_active(**KAFKA), ScriptedBroker(1, answers=CLIENTS)
    async with governed(memory, broker), asking(service) as client:
        groups = await client.send(kafka.ListGroupsRequest(), kafka.ListGroupsResponse, 5)
        assert groups == kafka.ListGroupsResponse()
        dirs = await client.send(kafka.DescribeLogDirsRequest(), kafka.DescribeLogDirsResponse, 4)
        assert [(result.error_code, result.topics) for result in dirs.results] == [(0, ())]
        transactions = await client.send(kafka.ListTransactionsRequest(), kafka.ListTransactionsResponse, 1)
        assert transactions.transaction_states == ()
    assert broker.told(kafka.ListGroupsRequest) == []


@define
class FailingBroker(ScriptedBroker):
    """A broker that ends the connections of clients instead of answering them."""

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve a connection."""
        if self.told(kafka.UpdateMetadataRequest):
            return
        await super().serve(stream)


async def test_a_broker_that_does_not_answer_costs_the_connection(
    controllers: Controllers, memory: MemoryZooKeeper
) -> None:
    service, broker = await controllers.start_active(**KAFKA), FailingBroker(1, answers=CLIENTS)
    async with governed(memory, broker), asking(service) as client:
        with capture_logs() as logs, pytest.raises(ConnectionBroken):
            await client.send(OF_TOPIC, kafka.DescribeConfigsResponse, 4)
    told = [line for line in logs if line["event"].startswith("connection closed")]
    assert [line["event"] for line in told] == ["connection closed: a client has to ask another node"]
    assert f"{HOST}:{broker.port}" in told[0]["reason"]


async def test_without_a_broker_there_is_nobody_to_pass_on_to(controllers: Controllers) -> None:
    service = await controllers.start_active(**KAFKA)
    async with asking(service) as client:
        assert set(client.offered) == KEYS_OF_OURS


class SecuredBroker(ScriptedBroker):
    """A broker at which the controller has to log in."""

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve a connection."""
        server = SaslServer(("PLAIN",), {"klamm": "klamm-secret"})
        await serve_stream(stream, dict.fromkeys({**ANSWERS, **self.answers}, self._take), sasl=server)


async def test_behind_a_login_clients_are_sent_to_another_node(
    controllers: Controllers, memory: MemoryZooKeeper, tmp_path: Path
) -> None:
    """A client would act as the controller there."""
    module = f'{MODULES}.plain.PlainLoginModule required username="klamm" password="klamm-secret"'
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} user_klamm="klamm-secret";',
    }
    file = write_properties(tmp_path / "klamm.properties", settings)
    service = await controllers.start_active(**KAFKA, security_config=str(file))
    network = secured(TcpNetwork(), read_security(file), serves=False)
    assert service.node is not None
    [at] = service.node.listeners
    opening, broker = (
        open_kafka_connection(network, at.host, at.port, client_id="client"),
        SecuredBroker(1, answers=CLIENTS),
    )
    async with governed(memory, broker), opening as client:
        assert set(client.offered) == {16, 32, 35, 66} | KEYS_OF_OURS | {17, 36}
        told = await client.send(NEW, kafka.MetadataResponse, 12)
        assert [topic.error_code for topic in told.topics] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        shutdown = await client.send(kafka.ControlledShutdownRequest(9, 1), kafka.ControlledShutdownResponse, 3)
        assert shutdown.error_code != 0
        with pytest.raises(ConnectionBroken, match="closed the connection"):
            await client.send(OF_TOPIC, kafka.DescribeConfigsResponse, 4)
    assert broker.told(kafka.MetadataRequest) == []


def test_what_only_leaders_or_controllers_answer_is_not_offered() -> None:
    offered = {key: Versions(0, 9) for key in range(70)}
    kept = {0, 4, 5, 6, 17, 18, 19, 20, 36, 37, 43, 45, 46, 51, 57}
    assert set(Relay(TcpNetwork(), Upstream(HOST, 1, offered)).offers()) == set(range(70)) - kept
