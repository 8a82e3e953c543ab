"""Messages between administrators and the cluster: its metadata, and reassignments (KIP-455)."""

from __future__ import annotations

from typing import ClassVar

from transport.messages.common import (
    MAX_LISTED_PARTITIONS,
    MAX_LISTED_TOPICS,
    BrokerEndpoint,
    Message,
    PartitionError,
    PartitionState,
    Request,
)
from transport.messages.topics import TopicError
from transport.metadata import LeaderAndIsr, OfPartition, OfReplicas, ReplicaAssignment, TopicPartition


class WaitingReplica(OfPartition, Message, frozen=True):
    """A replica that starts once its broker has deleted the log of an earlier topic of the same name."""

    topic: str
    partition: int
    broker_id: int


class FailedReplica(OfPartition, Message, frozen=True):
    """A replica whose live broker failed to carry out an order, so that others have to lead while they can.

    `order` is "lead", "follow" or "stop", `reason` the broker's error, and `failures` the number of those in a row.
    """

    topic: str
    partition: int
    broker_id: int
    order: str
    reason: str
    failures: int


class MetadataResponse(Message, frozen=True):
    """The cluster as the answering node knows it. `controller` is None if the node knows none.

    `refused`, since version 1, lists the requested topics that the caller may not describe, each with the reason.
    `are_kafkas`, since version 2, says that the brokers are Apache Kafka's, and speak its protocol.
    `waiting`, since version 3, lists the replicas that are offline because they wait for a deletion.
    `failed`, since version 4, lists the replicas whose brokers failed to carry out an order.
    `cluster_id`, since version 5, is empty if there is none, in answers of brokers, and in those about any topic.
    """

    controller: BrokerEndpoint | None
    controller_epoch: int
    brokers: tuple[BrokerEndpoint, ...]
    partitions: tuple[PartitionState, ...]
    refused: tuple[TopicError, ...] = ()
    are_kafkas: bool = False
    waiting: tuple[WaitingReplica, ...] = ()
    failed: tuple[FailedReplica, ...] = ()
    cluster_id: str = ""


class MetadataRequest(Request[MetadataResponse], frozen=True):
    """Ask any broker or controller about the cluster. `topics` None means all; unknown topics are left out."""

    max_listed: ClassVar[int | None] = MAX_LISTED_TOPICS

    topics: tuple[str, ...] | None = None


class ReassignablePartition(OfPartition, Message, frozen=True):
    """A partition and its new replicas, preferred leader first; None cancels its reassignment (KIP-455)."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None


class AlterPartitionReassignmentsResponse(Message, frozen=True):
    """An outcome for each partition. NONE means that its reassignment has begun, not that it is complete."""

    partitions: tuple[PartitionError, ...]


class AlterPartitionReassignmentsRequest(Request[AlterPartitionReassignmentsResponse], frozen=True):
    """Begin, override or cancel reassignments."""

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    partitions: tuple[ReassignablePartition, ...]


class OngoingReassignment(OfPartition, OfReplicas, Message, frozen=True):
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


class ListPartitionReassignmentsResponse(Message, frozen=True):
    """The reassignments in progress. Partitions that are not being reassigned are left out."""

    partitions: tuple[OngoingReassignment, ...]


class ListPartitionReassignmentsRequest(Request[ListPartitionReassignmentsResponse], frozen=True):
    """List the reassignments in progress of all partitions, or of those given (KIP-455)."""

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    partitions: tuple[TopicPartition, ...] | None = None
