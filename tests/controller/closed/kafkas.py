"""Brokers of Apache Kafka, while a path is closed that the controller writes."""

from __future__ import annotations

from typing import Final

from controller.config import ControllerConfig
from controller.events import BrokerReleaseSeen
from controller.model.context import ControllerContext
from tests.controller import deletions
from tests.controller.closed.brokers import no_assigned_replica_is_deleted, proposes_an_isr, the_isr_is_smaller
from tests.controller.closed.moves import takes_office
from tests.controller.closed.sweeps import Errors, Scenario
from tests.controller.conftest import ENDPOINT, TP, Bench
from tests.controller.deletions import replica
from tests.kit import kafka_registrations
from transport.kafka.releases import Release
from transport.metadata import Listener, ReplicaAssignment
from transport.store import formats, paths
from transport.store.protocol import Create

OLD: Final = Release(needs_registration=True, needs_epochs=True)
EARLIER: Final = (3, 2)
"""The replicas to which the cancel of an earlier move would return."""


async def three_brokers(bench: Bench) -> None:
    config = ControllerConfig(ENDPOINT.id, kafka=True)
    bench.context = bench.runner.context = ControllerContext(ENDPOINT, 1, 1, config=config)
    for broker_id in (1, 2, 3):
        await kafka_registrations.register(bench.store, broker_id, Listener("PLAINTEXT", "h", 9092))
    await bench.write_topic("orders", (1, 2, 3))


# --- what is older than another controller's interval -----------------------------------------------------------


async def older_strays(bench: Bench) -> None:
    await three_brokers(bench)
    await bench.store.multi([Create(paths.stray(replica(2))), Create(paths.stray(replica(4)))])
    await bench.store.multi([Create(paths.CONTROLLER, ephemeral=True)])


async def the_assigned_one_is_forgotten(bench: Bench) -> bool:
    return replica(2) not in await deletions.strays(bench)


async def an_earlier_move(bench: Bench) -> None:
    await three_brokers(bench)
    await bench.store.multi([Create(paths.topic_reassignments("orders"))])
    await bench.store.multi([Create(paths.reassignment(TP), formats.encode_reassign_partitions({TP: EARLIER}))])
    await bench.store.multi([Create(paths.CONTROLLER, ephemeral=True)])
    await bench.change_topic("orders", 0, ReplicaAssignment((4, 1, 2, 3), (4,), (3,)))


async def its_replicas_are_not_restored(bench: Bench) -> None:
    identity = bench.context.reassigning.get(TP)
    assert identity is None or identity.original != EARLIER


async def the_earlier_move_is_forgotten(bench: Bench) -> bool:
    return (await bench.znode(paths.reassignment(TP))).data == b""


# --- old releases -----------------------------------------------------------------------------------------------


async def brokers_of_an_unknown_release(bench: Bench) -> None:
    await three_brokers(bench)
    await bench.fail_over()


async def sees_an_old_release(bench: Bench) -> Errors:
    for broker_id in (1, 2, 3):
        await bench.handle(BrokerReleaseSeen(broker_id, bench.context.brokers[broker_id].epoch, OLD))
    return ()


async def the_controller_is_registered(bench: Bench) -> bool:
    await sees_an_old_release(bench)
    return await bench.read(paths.broker(ENDPOINT.id)) is not None


async def brokers_of_an_old_release(bench: Bench) -> None:
    await brokers_of_an_unknown_release(bench)
    await sees_an_old_release(bench)


SCENARIOS: Final = {
    "strays are older": Scenario(
        older_strays, takes_office, the_assigned_one_is_forgotten, no_assigned_replica_is_deleted
    ),
    "a move is older": Scenario(
        an_earlier_move, takes_office, the_earlier_move_is_forgotten, its_replicas_are_not_restored
    ),
    "an old release": Scenario(brokers_of_an_unknown_release, sees_an_old_release, the_controller_is_registered),
    "an ISR of an old release": Scenario(brokers_of_an_old_release, proposes_an_isr, the_isr_is_smaller),
}
