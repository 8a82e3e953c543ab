"""The operations that the commands need from a cluster: one of Klamm's, or one of Apache Kafka's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from controller.admin.move_admin import MoveAdmin
from transport.messages import (
    AlterConfigsResource,
    ConfigResource,
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    DescribeClusterResponse,
    ElectionType,
    NewPartitions,
    NewTopic,
    PartitionError,
    ResourceConfigs,
    ResourceError,
)
from transport.metadata import TopicPartition


@runtime_checkable
class ClusterAdmin(MoveAdmin, Protocol):
    """The interface used by the commands; see `AdminClient` for the details, and `KafkaAdmin`."""

    async def describe_cluster(self) -> DescribeClusterResponse:
        """Return the brokers, and counts of topics and partitions; unknown values are UNKNOWN."""

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> CreateTopicsResponse:
        """Create topics, or only check whether they could be created."""

    async def create_partitions(
        self, topics: Sequence[NewPartitions], *, validate_only: bool = False
    ) -> CreatePartitionsResponse:
        """Add partitions to topics, or only check whether they could be added."""

    async def delete_topics(self, names: Sequence[str]) -> DeleteTopicsResponse:
        """Delete topics."""

    async def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Sequence[TopicPartition] | None = None,
        *,
        orders: Mapping[TopicPartition, Sequence[int]] | None = None,
    ) -> tuple[PartitionError, ...]:
        """Elect leaders for the partitions named, or for all that need it, or by a new order of replicas."""

    async def describe_configs(self, resources: Sequence[ConfigResource]) -> tuple[ResourceConfigs, ...]:
        """Return the settings in effect for topics and brokers, and the sources of their values."""

    async def incremental_alter_configs(
        self, resources: Sequence[AlterConfigsResource], *, validate_only: bool = False
    ) -> tuple[ResourceError, ...]:
        """Change settings of topics and brokers, those of one resource all or not at all, or only check the changes."""
