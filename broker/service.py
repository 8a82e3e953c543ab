"""The interface that the author of a partitioned, replicated service implements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from broker.metadata_cache import MetadataCache
from transport.messages import LogDir, PartitionState, StopReplicaPartition
from transport.metadata import TopicPartition
from transport.wire import Handlers


class Service(Protocol):
    """The replicas of one broker.

    The first four methods carry out the controller's orders, one at a time and in the order of its decisions; stale
    orders have been rejected before. They should return as soon as the replica has its new role, and copy data in the
    background. If one of the first three raises, the order has failed for that replica alone: the controller receives
    the exception's text, lets another live member of the ISR lead, and repeats the order, so each must bear to be
    called again. KAFKA_STORAGE_ERROR as an ApiError means that the replica's data cannot be used. A service that finds
    out later that data cannot be used calls `BrokerHandle.report_lost`.
    """

    async def become_leader(self, state: PartitionState, *, is_new: bool) -> None:
        """Lead a partition.

        Also called for a newer ISR or replica set under the same `state.leader_epoch`, which continues the leadership.
        With `is_new`, the replica was just added and has no data here yet.
        """

    async def become_follower(self, state: PartitionState, *, is_new: bool) -> None:
        """Follow `state.leader`; if it is negative, stop leading and wait.

        Also called again under the same `state.leader_epoch`, like `become_leader`.
        """

    async def stop_replica(self, partition: StopReplicaPartition) -> None:
        """Neither lead nor follow, and with `partition.delete` remove the data.

        Also called for a replica without orders since the start, which may have data of an earlier run. Only data of
        `partition.topic_id` may be removed. It is not an error if there is nothing to stop.
        """

    async def update_metadata(self, metadata: MetadataCache) -> None:
        """React to changed metadata of the cluster. The object may be kept and read at any time."""

    def handlers(self) -> Handlers:
        """Return the handlers of the service's own apis, which are passed to `run_broker` as `own_apis`."""


@runtime_checkable
class DescribesLogDirs(Protocol):
    """An optional interface for services that know the sizes of their replicas, so that moves show their progress."""

    async def describe_log_dirs(self, partitions: Sequence[TopicPartition] | None) -> Sequence[LogDir]:
        """Return the directories and sizes of this broker's replicas, of all partitions or of those given.

        Partitions without a replica here are left out. A service without directories returns one with any name; unknown
        numbers are -1. While partitions are being moved this is called about once per second, so it should be quick.
        """
