"""The requests that large events begin with."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.kit.cluster import Shape
from transport.messages import (
    AlterPartitionReassignmentsRequest,
    ControlledShutdownRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewTopic,
    ReassignablePartition,
)
from transport.metadata import TopicPartition
from transport.store import paths
from transport.store.protocol import MetadataStore


async def shutdown_of(store: MetadataStore, broker_id: int) -> ControlledShutdownRequest:
    """Return the request of a broker that is about to stop."""
    [znode] = await store.read([paths.broker(broker_id)])
    assert znode is not None
    return ControlledShutdownRequest(broker_id, znode.stat.czxid)


def creation_of(more: Shape) -> CreateTopicsRequest:
    """Return the request for new topics."""
    size, factor = more.partitions_per_topic, more.replication_factor
    return CreateTopicsRequest(tuple(NewTopic(name, size, factor) for name in more.names()))


def deletion_of(more: Shape) -> DeleteTopicsRequest:
    """Return the request that deletes topics."""
    return DeleteTopicsRequest(tuple(more.names()))


def moves_to(targets: Mapping[TopicPartition, tuple[int, ...]]) -> AlterPartitionReassignmentsRequest:
    """Return the request for moves."""
    return AlterPartitionReassignmentsRequest(
        tuple(ReassignablePartition(*tp, target) for tp, target in targets.items())
    )
