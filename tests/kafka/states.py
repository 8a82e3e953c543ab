"""The state of a cluster of real brokers in ZooKeeper, whoever is its controller."""

from __future__ import annotations

from controller.admin.znode_moves import open_znode_moves
from tests.kafka.real_cluster import PATIENCE_SECONDS, RealCluster, until
from transport.messages import PartitionState
from transport.store import paths
from transport.store.protocol import MetadataStore


async def states_of(store: MetadataStore, topic: str) -> list[PartitionState]:
    """Return the partitions of a topic, in order."""
    async with open_znode_moves(store, PATIENCE_SECONDS) as reader:
        return sorted((await reader.read_metadata([topic])).partitions, key=lambda state: state.partition)


async def until_in_sync(store: MetadataStore, topic: str) -> None:
    """Wait until each partition of a topic has a leader, and all its replicas are in the ISR."""

    async def are_in_sync() -> bool:
        states = await states_of(store, topic)
        return all(state.leader in state.isr and set(state.isr) == set(state.replicas) for state in states)

    await until(are_in_sync)


async def is_gone(store: MetadataStore, path: str) -> bool:
    """Return whether a znode does not exist."""
    return await store.read([path]) == [None]


async def stands_by(cluster: RealCluster, controller_id: int, store: MetadataStore, reason: str) -> bool:
    """Return whether a controller of ours is registered, and has logged this reason for its standing by."""
    log = (cluster.directory / f"controller-{controller_id}.log").read_text()
    return reason in log and not await is_gone(store, paths.controller_endpoint(controller_id))
