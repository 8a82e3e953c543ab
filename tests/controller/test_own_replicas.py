"""Topics that brokers of Apache Kafka place on the controller, which they know as a live broker."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from controller.config import ControllerConfig
from controller.events import BrokerChange, PartitionModifications, TopicChange
from controller.handlers.failover import failover
from tests.controller.conftest import ENDPOINT, TP, Bench
from tests.kit import kafka_registrations
from transport.metadata import LeaderAndIsr, Listener, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create, ensure_paths

US = ENDPOINT.id
EARLIER = US + 1


@pytest.fixture
def kafka(bench: Bench) -> Bench:
    """Give the test a controller of brokers of Kafka's, which has not loaded the cluster yet."""
    bench.context.config = ControllerConfig(US, kafka=True)
    return bench


async def register(bench: Bench, *racks: str | None) -> None:
    for broker_id, rack in enumerate(racks, start=1):
        await kafka_registrations.register(bench.store, broker_id, Listener("PLAINTEXT", "h", 9092), rack=rack)
    await bench.run(failover(bench.context, iter(())))


async def replicas(bench: Bench, name: str = TP.topic) -> list[tuple[int, ...]]:
    znode = await bench.znode(paths.topic(name))
    return [assignment.replicas for assignment in formats.decode_topic(name, znode.data).partitions.values()]


@pytest.mark.parametrize(
    ("placed", "expected"),
    [
        ([(US, 1), (2, US), (1, 2)], [(3, 1), (2, 3), (1, 2)]),
        ([(US, 1, 2), (US, 3, 2)], [(3, 1, 2), (1, 3, 2)]),
        ([(US,), (US,), (US,), (1,)], [(2,), (3,), (1,), (1,)]),
        ([(3, US, 1, 2)], [(3, 1, 2)]),
        ([(4, US)], [(4, 1)]),
    ],
)
async def test_another_broker_takes_the_place_before_anybody_hears_of_the_topic(
    kafka: Bench, placed: Sequence[Sequence[int]], expected: Sequence[tuple[int, ...]]
) -> None:
    await register(kafka, None, None, None)
    await kafka.write_topic(TP.topic, *placed)
    await kafka.handle(TopicChange())
    assert await replicas(kafka) == expected
    assert [state.replicas for state in map(kafka.context.describe, kafka.context.leadership)] == expected
    told = {r for order in kafka.seen.leader_and_isr() for r in order.state.replicas}
    assert told == {r for each in expected for r in each}


async def test_a_broker_of_another_rack_is_preferred(kafka: Bench) -> None:
    await register(kafka, "a", "a", "b")
    await kafka.write_topic(TP.topic, (1, US))
    await kafka.handle(TopicChange())
    assert await replicas(kafka) == [(1, 3)]


async def test_a_new_controller_finds_what_was_placed_on_it_while_there_was_none(kafka: Bench) -> None:
    await kafka.write_topic(TP.topic, (US, 1))
    await register(kafka, None, None)
    assert await replicas(kafka) == [(2, 1)]
    assert kafka.context.leadership[TP].isr == (2, 1)


async def test_earlier_controllers_are_no_replicas_either(kafka: Bench) -> None:
    await ensure_paths(kafka.store, [paths.controller_id(EARLIER)])
    await kafka.write_topic(TP.topic, (EARLIER, 1), (2, US, EARLIER), (2, 4))
    await register(kafka, None, None, None)
    assert await replicas(kafka) == [(3, 1), (2, 1, 3), (2, 4)]
    # A broker that has the id now is one.
    await kafka_registrations.register(kafka.store, EARLIER, Listener("PLAINTEXT", "h", 9092))
    await kafka.handle(BrokerChange())
    await kafka.write_topic("later", (EARLIER, 1))
    await kafka.handle(TopicChange())
    assert await replicas(kafka, "later") == [(EARLIER, 1)]


async def test_partitions_that_are_added_are_placed_anew_as_well(kafka: Bench) -> None:
    await register(kafka, None, None)
    await kafka.write_topic(TP.topic, (1, 2))
    await kafka.handle(TopicChange())
    await kafka.change_topic(TP.topic, 1, ReplicaAssignment((US, 2)))
    await kafka.handle(PartitionModifications(TP.topic))
    assert await replicas(kafka) == [(1, 2), (1, 2)]
    assert kafka.context.leadership[TopicPartition(TP.topic, 1)].isr == (1, 2)


async def test_a_partition_that_has_been_led_is_left_to_its_administrator(kafka: Bench) -> None:
    await kafka.write_topic(TP.topic, (1, US))
    state = formats.encode_partition_state(LeaderAndIsr(1, 0, (1,), 0, 0))
    above = [Create(path) for path in (paths.topic_partitions(TP.topic), paths.partition(TP))]
    await kafka.store.multi([*above, Create(paths.partition_state(TP), state)])
    with capture_logs() as logs:
        await register(kafka, None, None)
    assert [line["partitions"] for line in logs if line["log_level"] == "error"] == [["orders-0"]]
    assert await replicas(kafka) == [(1, US)]


async def test_a_controller_of_our_brokers_changes_nothing(bench: Bench) -> None:
    await bench.start((1, US), brokers=(1, 2))
    assert await replicas(bench) == [(1, US)]
