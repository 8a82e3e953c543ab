"""The operations that moves need from a cluster: through its controller or, if that is Kafka's own, through znodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from controller.admin.broker_log_dirs import BrokerLogDirs
from controller.admin.log_mover import LogMover
from controller.admin.reassignments import ReassignmentDescriptions
from controller.admin.visibility import Visibility
from transport.messages import (
    AlterPartitionReassignmentsResponse,
    MetadataResponse,
    OngoingReassignment,
    ReassignablePartition,
)
from transport.metadata import TopicPartition


class MoveAdmin(Protocol):
    """The interface used by the commands for moves; see `AdminClient` for the details, and `ZnodeMoves`."""

    async def alter_partition_reassignments(
        self, partitions: Sequence[ReassignablePartition]
    ) -> AlterPartitionReassignmentsResponse:
        """Begin, override or cancel reassignments."""

    async def list_partition_reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[OngoingReassignment, ...]:
        """Return the reassignments in progress, of all partitions or of those named."""

    async def describe_reassignments(self) -> ReassignmentDescriptions:
        """Return the progress of all reassignments; unknown values are UNKNOWN."""

    async def cluster_id(self) -> str | None:
        """Return the id of the cluster, None if it has none."""

    async def read_metadata(self, topics: Sequence[str] | None = None) -> MetadataResponse:
        """Return brokers and partitions, of all topics or of those named that exist."""

    async def describe_log_dirs(
        self, broker_ids: Sequence[int] | None = None, partitions: Sequence[TopicPartition] | None = None
    ) -> dict[int, BrokerLogDirs]:
        """Return the contents of the log directories of brokers."""

    async def visibility(
        self, others: Mapping[str, int] = MappingProxyType({}), *, settings: bool = False
    ) -> Visibility:
        """Return how much of the cluster we may see; `others` are topics as of `visibility.undescribed`.

        Whether we see the `settings` of topics is asked only if it matters.
        """


@runtime_checkable
class ForeignAdmin(MoveAdmin, LogMover, Protocol):
    """The interface to clusters of Kafka's that are asked by Kafka's protocol.

    They do not keep what was before a move, neither the order of replicas nor who throttles what: the commands keep a
    record of it. Their brokers move logs between directories. Clusters with another interface do the former themselves,
    or offer nothing that would need it, and their brokers do not do the latter.
    """
