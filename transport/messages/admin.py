"""Between administrators and the cluster: what there is, and what is to become of it."""

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
from transport.metadata import OfPartition


@frozen
class MetadataResponse:
    """The cluster as the answering node knows it. `controller` is None while none is known.

    `refused`, since version 1, are the named topics that the caller may not describe, with the reason.
    """

    controller: BrokerEndpoint | None
    controller_epoch: int
    brokers: tuple[BrokerEndpoint, ...]
    partitions: tuple[PartitionState, ...]
    refused: tuple[TopicError, ...] = ()


@frozen
class MetadataRequest(Request[MetadataResponse]):
    """Ask any broker or controller about the cluster; `topics` None means all, an unknown one is left out."""

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
    """An outcome for each partition: NONE means begun, not done."""

    partitions: tuple[PartitionError, ...]


@frozen
class AlterPartitionReassignmentsRequest(Request[AlterPartitionReassignmentsResponse]):
    """Begin, override or cancel reassignments."""

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    partitions: tuple[ReassignablePartition, ...]


@frozen
class OngoingReassignment(OfPartition):
    """A partition that is being reassigned."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    leader: int
    isr: tuple[int, ...]


@frozen
class ListPartitionReassignmentsResponse:
    """The reassignments under way; partitions that are not being reassigned are left out."""

    partitions: tuple[OngoingReassignment, ...]


@frozen
class ListPartitionReassignmentsRequest(Request[ListPartitionReassignmentsResponse]):
    """List the reassignments under way, of all partitions or of those named as (topic, partition) (KIP-455)."""

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    partitions: tuple[tuple[str, int], ...] | None = None
