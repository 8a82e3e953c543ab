"""Messages between administrators and the cluster: its metadata, and reassignments (KIP-455)."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from transport.messages.common import (
    MAX_LISTED_PARTITIONS,
    MAX_LISTED_TOPICS,
    BrokerEndpoint,
    PartitionError,
    PartitionState,
    Request,
)
from transport.messages.topics import TopicError
from transport.metadata import LeaderAndIsr, OfPartition, OfReplicas, ReplicaAssignment, TopicPartition


@frozen
class MetadataResponse:
    """The cluster as the answering node knows it. `controller` is None if the node knows none.

    `refused`, since version 1, lists the requested topics that the caller may not describe, each with the reason.
    """

    controller: BrokerEndpoint | None
    controller_epoch: int
    brokers: tuple[BrokerEndpoint, ...]
    partitions: tuple[PartitionState, ...]
    refused: tuple[TopicError, ...] = ()


@frozen
class MetadataRequest(Request[MetadataResponse]):
    """Ask any broker or controller about the cluster. `topics` None means all; unknown topics are left out."""

    max_listed: ClassVar[int | None] = MAX_LISTED_TOPICS

    topics: tuple[str, ...] | None = None


@frozen
class ReassignablePartition(OfPartition):
    """A partition and its new replicas, preferred leader first; None cancels its reassignment (KIP-455)."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None


@frozen
class AlterPartitionReassignmentsResponse:
    """An outcome for each partition. NONE means that its reassignment has begun, not that it is complete."""

    partitions: tuple[PartitionError, ...]


@frozen
class AlterPartitionReassignmentsRequest(Request[AlterPartitionReassignmentsResponse]):
    """Begin, override or cancel reassignments."""

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    partitions: tuple[ReassignablePartition, ...]


@frozen
class OngoingReassignment(OfPartition, OfReplicas):
    """A partition that is being reassigned."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    leader: int
    isr: tuple[int, ...]

    @classmethod
    def of(cls, tp: TopicPartition, move: ReplicaAssignment, led: LeaderAndIsr) -> OngoingReassignment:
        """Combine a partition's assignment and its leadership."""
        return cls(*tp, move.replicas, move.adding_replicas, move.removing_replicas, led.leader, led.isr)


@frozen
class ListPartitionReassignmentsResponse:
    """The reassignments in progress. Partitions that are not being reassigned are left out."""

    partitions: tuple[OngoingReassignment, ...]


@frozen
class ListPartitionReassignmentsRequest(Request[ListPartitionReassignmentsResponse]):
    """List the reassignments in progress of all partitions, or of those given as (topic, partition) (KIP-455)."""

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    partitions: tuple[tuple[str, int], ...] | None = None
