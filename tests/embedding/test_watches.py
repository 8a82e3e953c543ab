"""Every change of the store that the active controller must know of becomes its event."""

from __future__ import annotations

from functools import partial

import pytest
import trio

import klamm
from controller.node.service import ControllerService
from transport.host import Host
from transport.metadata import BrokerRegistration, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.memory import MemoryZooKeeper
from transport.store.protocol import Create, Op, Set

BROKER = formats.encode_broker(BrokerRegistration(1, "127.0.0.1", 1, -1), 0)
TOPIC = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment((1,))}, "id"))
PARTITIONS = formats.encode_partitions([TopicPartition("t", 0)])


@pytest.mark.requirement("E1")
@pytest.mark.parametrize(
    ("change", "event"),
    [
        (Create(paths.broker(2), BROKER, ephemeral=True), "BrokerChange"),
        (Set(paths.broker(1), BROKER, -1), "BrokerModifications"),
        (Create(paths.topic("u"), TOPIC), "TopicChange"),
        (Set(paths.topic("t"), TOPIC, -1), "PartitionModifications"),
        (Create(paths.REASSIGN_PARTITIONS, b"{}"), "ZkPartitionReassignment"),
        (Create(paths.PREFERRED_REPLICA_ELECTION, PARTITIONS), "PreferredReplicaElection"),
        (Create(f"{paths.ISR_CHANGE_NOTIFICATION}/isr_change_", PARTITIONS, sequence=True), "IsrChangeNotification"),
        (
            Create(f"{paths.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_", b'{"broker":1}', sequence=True),
            "LogDirEventNotification",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_a_change_of_the_store_becomes_its_event(change: Op, event: str) -> None:
    zookeeper = MemoryZooKeeper(Host().now_ms)
    async with zookeeper.session() as store, trio.open_nursery() as nursery:
        running = partial(klamm.run, klamm.ControllerConfig(1001), open_store=zookeeper.session)
        service: ControllerService = await nursery.start(running)
        await _until(service, "Elect")
        await store.multi([Create(paths.broker(1), BROKER, ephemeral=True)])
        await store.multi([Create(paths.topic("t"), TOPIC)])
        await _until(service, "TopicChange")
        seen = service.statistics()[event].count if event in service.statistics() else 0
        await store.multi([change])
        await _until(service, event, seen + 1)
        nursery.cancel_scope.cancel()


async def _until(service: ControllerService, event: str, count: int = 1) -> None:
    with trio.fail_after(10):
        while event not in service.statistics() or service.statistics()[event].count < count:
            await trio.sleep(0.001)
