"""Brokers of Apache Kafka: which of their listeners is used, and who is refused by name."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from controller.config import ControllerConfig
from controller.events import BrokerChange, BrokerModifications
from controller.monitoring import state_dump
from tests.controller.conftest import ENDPOINT, Bench
from tests.kit import kafka_registrations
from transport.metadata import BrokerRegistration, Listener
from transport.store import paths
from transport.store.protocol import Set

INTERNAL, CONTROL, EXTERNAL = (Listener(name, "h", port) for name, port in (("INTERNAL", 1), ("CONTROL", 2), ("X", 3)))


@pytest.fixture
async def kafka(bench: Bench) -> Bench:
    """Give the test a controller of brokers of Kafka's."""
    bench.context.config = ControllerConfig(ENDPOINT.id, kafka=True, inter_broker_listener_name="INTERNAL")
    await bench.start(brokers=())
    return bench


async def faults(bench: Bench) -> list[str]:
    """Let the controller look at the brokers, and return why it set some aside."""
    with capture_logs() as logs:
        await bench.handle(BrokerChange())
    return [line["fault"] for line in logs if line["event"] == "a live broker's registration cannot be used"]


async def test_the_named_listener_is_used_and_all_are_kept(kafka: Bench) -> None:
    await kafka_registrations.register(kafka.store, 1, EXTERNAL, INTERNAL, rack="a")
    assert await faults(kafka) == []
    epoch = (await kafka.znode(paths.broker(1))).stat.czxid
    expected = BrokerRegistration(1, "h", 1, epoch, "a", listeners=(EXTERNAL, INTERNAL))
    assert kafka.context.brokers == {1: expected}


async def test_a_listener_for_the_controller_comes_first(kafka: Bench) -> None:
    kafka.context.config = ControllerConfig(
        ENDPOINT.id, kafka=True, inter_broker_listener_name="INTERNAL", control_plane_listener_name="control"
    )
    await kafka_registrations.register(kafka.store, 1, INTERNAL, CONTROL)
    assert await faults(kafka) == []
    assert kafka.context.brokers[1].port == CONTROL.port


async def test_a_listener_that_is_added_is_known(kafka: Bench) -> None:
    await kafka_registrations.register(kafka.store, 1, INTERNAL)
    await faults(kafka)
    await kafka.store.multi([Set(paths.broker(1), kafka_registrations.encode(INTERNAL, EXTERNAL), -1)])
    await kafka.handle(BrokerModifications(1))
    assert kafka.context.brokers[1].listeners == (INTERNAL, EXTERNAL)


async def test_brokers_of_both_kinds_in_one_cluster_are_refused_by_name(kafka: Bench) -> None:
    await kafka_registrations.register(kafka.store, 1, INTERNAL)
    await kafka.register(2)
    [fault] = await faults(kafka)
    assert "/brokers/ids/2" in fault
    assert "a broker of Klamm's" in fault
    assert list(kafka.context.brokers) == [1]


async def test_a_controller_of_our_brokers_takes_none_of_kafkas(bench: Bench) -> None:
    await bench.start(brokers=(1,))
    await kafka_registrations.register(bench.store, 2, INTERNAL)
    [fault] = await faults(bench)
    assert "no listener named KLAMM" in fault
    assert list(bench.context.brokers) == [1]


async def test_the_state_dump_shows_brokers_of_both_kinds(kafka: Bench) -> None:
    await kafka_registrations.register(kafka.store, 1, EXTERNAL, INTERNAL)
    await kafka_registrations.register(kafka.store, 2)
    await kafka.register(3)
    dumped = await state_dump.dump(kafka.store)
    assert [(row["id"], row["port"]) for row in dumped["brokers"]] == [(1, EXTERNAL.port), (3, 9003)]
    [fault] = dumped["undecodable"]
    assert fault.startswith("/brokers/ids/2")


async def test_a_broker_with_the_controllers_id_is_refused(kafka: Bench) -> None:
    await kafka_registrations.register(kafka.store, ENDPOINT.id, INTERNAL)
    [fault] = await faults(kafka)
    assert "the id of the controller" in fault
    assert kafka.context.brokers == {}
