"""The controller's own registration among Kafka's brokers, for those of releases that look for it there."""

from __future__ import annotations

import pytest
from attrs import evolve
from structlog.testing import capture_logs

from controller.config import ControllerConfig
from controller.events import BrokerChange, BrokerReleaseSeen, TopicChange
from controller.model.kafka_brokers import KafkaBrokers
from controller.monitoring import state_dump
from tests.controller.conftest import ENDPOINT, Bench
from tests.kit import kafka_registrations
from transport.kafka.registration import decode_registration, is_controllers
from transport.kafka.releases import Release
from transport.messages import DescribeClusterRequest, DescribeClusterResponse
from transport.metadata import Listener, ReplicaAssignment
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.protocol import Create, Delete, ensure_paths

OURS = Listener("PLAINTEXT", "127.0.0.1", 9190)
PATH = paths.broker(ENDPOINT.id)
OLD, NEW = Release(needs_registration=True), Release(needs_registration=False)


@pytest.fixture
async def kafka(bench: Bench) -> Bench:
    """Give the test a controller of two brokers of Kafka's, to which it has not connected yet."""
    bench.context.config = ControllerConfig(ENDPOINT.id, kafka=True)
    bench.context.kafka = KafkaBrokers((OURS,))
    for broker_id in (1, 2):
        await kafka_registrations.register(bench.store, broker_id, Listener("PLAINTEXT", "h", broker_id))
    await bench.start(brokers=())
    return bench


async def see(bench: Bench, broker_id: int, release: Release) -> None:
    """Let a connection show a broker's release."""
    await bench.handle(BrokerReleaseSeen(broker_id, bench.context.brokers[broker_id].epoch, release))


async def test_a_broker_of_an_old_release_finds_the_controller(kafka: Bench) -> None:
    await see(kafka, 1, OLD)
    znode = await kafka.znode(PATH)
    assert znode.stat.ephemeral_owner == kafka.store.session_id
    assert is_controllers(ENDPOINT.id, znode.data)
    # Kafka's brokers read it as they read each other's.
    assert decode_registration(ENDPOINT.id, znode.data, 1, "PLAINTEXT").listeners == (OURS,)


async def test_the_controller_does_not_take_itself_for_a_broker(kafka: Bench) -> None:
    await see(kafka, 1, OLD)
    with capture_logs() as logs:
        await kafka.handle(BrokerChange())
    assert sorted(kafka.context.brokers) == [1, 2]
    assert [line for line in logs if line["log_level"] == "error"] == []
    assert [row["id"] for row in (await state_dump.dump(kafka.store))["brokers"]] == [1, 2]


async def test_other_settings_than_those_of_brokers_are_named_once(kafka: Bench) -> None:
    same, other = ("delete.topic.enable", "true"), ("auto.leader.rebalance.enable", "false")
    with capture_logs() as logs:
        for broker_id in (1, 2):
            await see(kafka, broker_id, evolve(NEW, of_controllers=(other, same)))
        await see(kafka, 2, evolve(NEW, of_controllers=(same,)))
    [line] = [line for line in logs if "settings" in line]
    assert (line["broker"], line["settings"]) == (1, ["auto.leader.rebalance.enable=false"])


async def test_topics_inherit_the_min_isr_of_the_brokers(kafka: Bench) -> None:
    topic = formats.encode_topic(TopicZnode({0: ReplicaAssignment((2,))}, "AAAAAAAAAAAAAAAAAAAAAQ"))
    settings = formats.encode_config({"min.insync.replicas": "1"})
    topics = [Create(paths.topic(name), topic) for name in ("own", "other")]
    await ensure_paths(kafka.store, [paths.TOPIC_CONFIGS])
    await kafka.store.multi([Create(paths.topic_config("own"), settings), *topics])
    await kafka.handle(TopicChange())

    async def counted() -> tuple[int, int, int]:
        found = await kafka.ask(DescribeClusterRequest(), DescribeClusterResponse)
        return kafka.context.min_isr("own"), kafka.context.min_isr("other"), found.under_min_isr

    assert await counted() == (1, 1, 0)
    await see(kafka, 2, evolve(NEW, min_isr=2))
    assert await counted() == (1, 2, 1)
    # The first broker counts, if it says anything.
    await see(kafka, 1, NEW)
    assert await counted() == (1, 2, 1)
    await see(kafka, 1, evolve(NEW, min_isr=3))
    assert await counted() == (1, 3, 1)
    await kafka.kill(1)
    await see(kafka, 2, evolve(NEW, min_isr=1))
    assert await counted() == (1, 1, 0)


async def test_brokers_of_later_releases_do_not_need_it(kafka: Bench) -> None:
    await see(kafka, 1, NEW)
    await see(kafka, 2, NEW)
    assert await kafka.read(PATH) is None


async def test_it_goes_with_the_last_broker_that_needs_it(kafka: Bench) -> None:
    await see(kafka, 1, OLD)
    await see(kafka, 2, OLD)
    await kafka.kill(1)
    assert await kafka.read(PATH) is not None
    await kafka.kill(2)
    assert await kafka.read(PATH) is None


async def test_it_stays_while_the_release_of_a_live_broker_is_unknown(kafka: Bench) -> None:
    await see(kafka, 1, OLD)
    await kafka.kill(1)
    assert await kafka.read(PATH) is not None
    await see(kafka, 2, NEW)
    assert await kafka.read(PATH) is None


async def test_one_that_is_lost_or_has_another_address_is_replaced(kafka: Bench) -> None:
    await see(kafka, 1, OLD)
    await kafka.store.multi([Delete(PATH)])
    await kafka.handle(BrokerChange())
    before = await kafka.znode(PATH)
    kafka.context.kafka.listeners = (Listener("PLAINTEXT", "127.0.0.1", 9191),)
    await kafka.handle(BrokerChange())
    after = await kafka.znode(PATH)
    assert after.stat.czxid > before.stat.czxid
    assert b":9191" in after.data


async def test_it_is_not_written_anew_without_need(kafka: Bench) -> None:
    await see(kafka, 1, OLD)
    before = await kafka.znode(PATH)
    await see(kafka, 2, OLD)
    await kafka.handle(BrokerChange())
    assert await kafka.znode(PATH) == before


async def test_a_broker_of_the_same_id_keeps_its_registration(kafka: Bench) -> None:
    await kafka_registrations.register(kafka.store, ENDPOINT.id, Listener("PLAINTEXT", "h", 3))
    before = await kafka.znode(PATH)
    await see(kafka, 1, OLD)
    await see(kafka, 1, NEW)
    await see(kafka, 2, NEW)
    assert await kafka.znode(PATH) == before


async def test_what_an_earlier_incarnation_has_shown_says_nothing(kafka: Bench) -> None:
    await kafka.handle(BrokerReleaseSeen(1, kafka.context.brokers[1].epoch - 1, OLD))
    assert kafka.context.kafka.releases == {}
    assert await kafka.read(PATH) is None


async def test_another_controllers_registration_is_no_broker(kafka: Bench) -> None:
    await see(kafka, 1, OLD)
    kafka.context.controller = kafka.context.controller.__class__(1002, "127.0.0.1", 2)
    await kafka.handle(BrokerChange())
    assert sorted(kafka.context.brokers) == [1, 2]
