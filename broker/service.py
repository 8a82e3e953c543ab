"""What the author of a partitioned, replicated service implements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from broker.metadata_cache import MetadataCache
from transport.messages import LogDir, PartitionState, StopReplicaPartition
from transport.metadata import TopicPartition
from transport.wire import Handlers


class Service(Protocol):
    """The replicas of one broker.

    The first four are called for the controller, one at a time and in the order of its decisions; what they are told
    has passed the fence. They should return as soon as the replica is what it should be: copying data is for the
    background. The first three may raise ApiError to fail that one partition, which the controller is told
    (KAFKA_STORAGE_ERROR if its data cannot be used); it stays as it was then. A service that finds out later that data
    cannot be used says so with `BrokerHandle.report_lost`.
    """

    async def become_leader(self, state: PartitionState, *, is_new: bool) -> None:
        """Lead a partition.

        Also called again under the same `state.leader_epoch` when a newer ISR or replica set is known: that is no
        new leadership. `is_new` says that the replica was just added and has no data here yet.
        """

    async def become_follower(self, state: PartitionState, *, is_new: bool) -> None:
        """Follow `state.leader`, or nobody if it is negative: then stop leading and wait.

        Also called again under the same `state.leader_epoch`, as `become_leader` is.
        """

    async def stop_replica(self, partition: StopReplicaPartition) -> None:
        """Neither lead nor follow, and with `partition.delete` remove the data.

        Also called for a replica that was not heard of since the start, which may have data from an earlier run: only
        data of `partition.topic_id` may be removed. Nothing to stop is no error.
        """

    async def update_metadata(self, metadata: MetadataCache) -> None:
        """Look at the cluster's metadata, which has changed; it may be kept and read at any time."""

    def handlers(self) -> Handlers:
        """Return the handlers of the service's own apis, whose rows `run_broker` takes as `own_apis`."""


@runtime_checkable
class DescribesLogDirs(Protocol):
    """What a service that knows how much its replicas hold implements besides: then moves show how far they are."""

    async def describe_log_dirs(self, partitions: Sequence[TopicPartition] | None) -> Sequence[LogDir]:
        """Return where the replicas of this broker are and how large, of all partitions or of those named.

        What is not here is left out. A service without directories has one, under any name; what it cannot tell of a
        replica is -1. It is asked about once per second for the partitions that are being moved, so it should be quick.
        """
