"""Questions that tests of deletions ask the bench."""

from __future__ import annotations

from collections.abc import Sequence

from controller.events import ReplicasDeleted, TopicDeletion
from controller.model.state_machines import ReplicaPhase
from tests.controller.conftest import TP, Bench
from tests.kit.told import Stop
from transport.messages import StopReplicaPartition
from transport.metadata import EPOCH_DURING_DELETE, ReplicaAssignment, Stray, TopicPartition
from transport.store import formats, paths
from transport.store.protocol import Create

SECOND = TopicPartition("orders", 1)
STARTED, SUCCESSFUL = ReplicaPhase.DELETION_STARTED, ReplicaPhase.DELETION_SUCCESSFUL
INELIGIBLE = ReplicaPhase.DELETION_INELIGIBLE


async def mark(bench: Bench, *names: str) -> None:
    """Mark topics for deletion, and let the controller see it."""
    await bench.store.multi([Create(paths.delete_topic(name)) for name in names])
    await bench.handle(TopicDeletion())


async def start_and_mark(bench: Bench, *partitions: Sequence[int]) -> None:
    """Take office in a cluster with one topic, and let the controller see that it is marked for deletion."""
    await bench.start(*partitions)
    await mark(bench, "orders")


def replica(broker_id: int, partition: int = 0, topic: str = "orders") -> Stray:
    """Name a replica as answers do."""
    return Stray(f"id-of-{topic}", topic, partition, broker_id)


async def deleted(bench: Bench, *replicas: Stray) -> None:
    """Let brokers answer that they have deleted replicas."""
    for broker_id in dict.fromkeys(item.broker_id for item in replicas):
        await bench.handle(obeyed(*(item for item in replicas if item.broker_id == broker_id)))


def obeyed(*replicas: Stray, epoch: int = EPOCH_DURING_DELETE) -> ReplicasDeleted:
    """Return the event that a broker has carried out the orders to delete its replicas."""
    [broker_id] = {item.broker_id for item in replicas}
    orders = [StopReplicaPartition(item.topic, item.topic_id, item.partition, epoch, delete=True) for item in replicas]
    return ReplicasDeleted(broker_id, tuple(orders))


async def strays(bench: Bench) -> list[Stray | None]:
    """Return the strays in the store, in order; None for one whose name is not that of a stray."""
    [names] = await bench.store.children([paths.STRAYS])
    return [paths.parse_stray(name) for name in names or []]


async def create(bench: Bench, topic_id: str, *replicas: int) -> None:
    """Let somebody write the znode of a topic `orders` of one partition."""
    data = formats.encode_topic(formats.TopicZnode({0: ReplicaAssignment(replicas)}, topic_id))
    await bench.store.multi([Create(paths.topic("orders"), data)])


def told_to_delete(bench: Bench) -> list[tuple[int, TopicPartition]]:
    """List who was told to delete what; nobody may have been told to stop anything else."""
    stops = [p for p in bench.seen.published if isinstance(p, Stop)]
    assert {(stop.partition.delete, stop.partition.leader_epoch) for stop in stops} <= {(True, EPOCH_DURING_DELETE)}
    return sorted((b, s.partition.tp) for s in stops for b in s.brokers)


def phases(bench: Bench, tp: TopicPartition = TP) -> dict[int, ReplicaPhase]:
    """Return the states of a partition's replicas by broker."""
    return {broker_id: phase for (of, broker_id), phase in sorted(bench.context.replica_phases.items()) if of == tp}


async def znodes(bench: Bench, name: str = "orders") -> list[str]:
    """List what is left of a topic in the store."""
    every = [paths.topic(name), paths.topic_partitions(name), paths.topic_config(name), paths.delete_topic(name)]
    every += [paths.partition(TopicPartition(name, number)) for number in range(3)]
    every += [paths.partition_state(TopicPartition(name, number)) for number in range(3)]
    found = await bench.store.read(every)
    return [path for path, znode in zip(every, found, strict=True) if znode is not None]


def leaves_no_trace(bench: Bench, name: str = "orders") -> bool:
    """Return whether the context knows nothing of a topic."""
    context = bench.context
    replicas = [tp for tp, _ in (*context.replica_phases, *context.failures)]
    tps = [*context.leadership, *context.partition_phases, *context.reassigning, *replicas]
    return name not in {*context.topics, *context.deletions, *(tp.topic for tp in tps)}
