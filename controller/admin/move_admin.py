"""What moving replicas takes of a cluster: its controller does it, or where that is Kafka's own, its znodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from controller.admin.broker_log_dirs import BrokerLogDirs
from controller.admin.reassignments import ReassignmentDescriptions
from transport.messages import (
    AlterPartitionReassignmentsResponse,
    MetadataResponse,
    OngoingReassignment,
    ReassignablePartition,
)
from transport.metadata import TopicPartition


class MoveAdmin(Protocol):
    """Whom the commands about moves ask: `AdminClient`, whose words hold here too, or `ZnodeMoves`."""

    async def alter_partition_reassignments(
        self, partitions: Sequence[ReassignablePartition]
    ) -> AlterPartitionReassignmentsResponse:
        """Begin, override or cancel reassignments."""

    async def list_partition_reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[OngoingReassignment, ...]:
        """Return the reassignments under way, of all partitions or of those named."""

    async def describe_reassignments(self) -> ReassignmentDescriptions:
        """Return how far all reassignments under way are; what nobody can tell is UNKNOWN."""

    async def read_metadata(self, topics: Sequence[str] | None = None) -> MetadataResponse:
        """Return brokers and partitions, of all topics or of those named that exist."""

    async def describe_log_dirs(
        self, broker_ids: Sequence[int] | None = None, partitions: Sequence[TopicPartition] | None = None
    ) -> dict[int, BrokerLogDirs]:
        """Return what the log directories of brokers hold."""
