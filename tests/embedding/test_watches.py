"""Every change of the store that concerns the active controller becomes its event."""

from __future__ import annotations

import pytest

from controller.node.service import ControllerService
from tests.kit.service import Controllers, until
from transport.metadata import BrokerRegistration, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
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
async def test_a_change_of_the_store_becomes_its_event(controllers: Controllers, change: Op, event: str) -> None:
    async with controllers.memory.session() as store:
        service = await controllers.start()
        await until(lambda: count(service, "Elect") > 0)
        await store.multi([Create(paths.broker(1), BROKER, ephemeral=True)])
        await store.multi([Create(paths.topic("t"), TOPIC)])
        await until(lambda: count(service, "TopicChange") > 0)
        seen = count(service, event)
        await store.multi([change])
        await until(lambda: count(service, event) > seen)


async def test_many_topics_that_others_changed_are_looked_at_in_one_event(controllers: Controllers) -> None:
    names = [f"topic-{number}" for number in range(300)]
    grown = formats.encode_topic(formats.TopicZnode(dict.fromkeys(range(2), ReplicaAssignment((1,))), "id"))
    async with controllers.memory.session() as store:
        service = await controllers.start()
        await until(lambda: count(service, "Elect") > 0)
        await store.multi([Create(paths.broker(1), BROKER, ephemeral=True)])
        await store.multi([Create(paths.topic(name), TOPIC) for name in names])
        await until(lambda: count(service, "TopicChange") > 0)
        await store.multi([Set(paths.topic(name), grown, 0) for name in names])
        await until(lambda: count(service, "PartitionModifications") > 0)
        states = [paths.partition_state(TopicPartition(name, 1)) for name in names]
        assert None not in await store.read(states)
        assert count(service, "PartitionModifications") == 1


def count(service: ControllerService, event: str) -> int:
    return service.statistics()[event].count if event in service.statistics() else 0
