"""Messages between controller and brokers: orders for partitions, and leaders' changes of the ISR."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import field, frozen

from transport.errors import ErrorCode
from transport.messages.common import MAX_LISTED_PARTITIONS, BrokerEndpoint, PartitionError, PartitionState, Request
from transport.metadata import OfPartition

UNNUMBERED: Final = -1
"""The number of a request in a version without numbers."""


@frozen
class LeaderAndIsrPartition:
    """A partition that the broker hosts. `is_new` allows it to create the log (KAFKA-10314)."""

    state: PartitionState
    is_new: bool


@frozen
class LeaderAndIsrResponse:
    """An outcome for each partition."""

    partitions: tuple[PartitionError, ...]


@frozen
class LeaderAndIsrRequest(Request[LeaderAndIsrResponse]):
    """Lead or follow these partitions. Fenced by the controller's, the broker's and each leader's epoch.

    `number` (since version 1, as in the two other requests) rises with each request to a broker epoch under a
    controller epoch. A retry keeps its number, so that a broker can reject a copy that arrives after later requests.
    """

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[LeaderAndIsrPartition, ...]
    number: int = field(default=UNNUMBERED, eq=False)


@frozen
class UpdateMetadataResponse:
    """Confirmation that the metadata was applied."""


@frozen
class UpdateMetadataRequest(Request[UpdateMetadataResponse]):
    """Changed partitions, and the address of the controller.

    `live_brokers` and, since version 1, `topics` are complete lists unless None. `topics` has (name, topic id) pairs,
    with "" for an unknown id. A broker that missed the deletion of a topic then forgets the topic.
    """

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    controller: BrokerEndpoint
    live_brokers: tuple[BrokerEndpoint, ...] | None
    partitions: tuple[PartitionState, ...]
    topics: tuple[tuple[str, str], ...] | None = None
    number: int = field(default=UNNUMBERED, eq=False)


@frozen
class StopReplicaPartition(OfPartition):
    """Stop a replica, and with `delete` remove its data. `leader_epoch` -2 means that the topic is being deleted."""

    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    delete: bool


@frozen
class StopReplicaResponse:
    """An outcome for each partition. A partition that the broker does not host counts as stopped."""

    partitions: tuple[PartitionError, ...]


@frozen
class StopReplicaRequest(Request[StopReplicaResponse]):
    """Stop leading or following these partitions."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[StopReplicaPartition, ...]
    number: int = field(default=UNNUMBERED, eq=False)


@frozen
class AlterPartitionItem(OfPartition):
    """The ISR that a leader proposes for one partition, and the epochs that it is based on (KIP-497)."""

    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    new_isr: tuple[int, ...]
    partition_epoch: int
    leader_recovery_state: int = 0


@frozen
class AlterPartitionResult(OfPartition):
    """The controller's answer to a proposal: the state in effect if `error` is NONE."""

    topic: str
    partition: int
    error: ErrorCode
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1
    leader_recovery_state: int = 0


@frozen
class AlterPartitionResponse:
    """A result for each partition."""

    partitions: tuple[AlterPartitionResult, ...]


@frozen
class AlterPartitionRequest(Request[AlterPartitionResponse]):
    """Ask the controller, as a leader, to change ISRs."""

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    broker_id: int
    broker_epoch: int
    partitions: tuple[AlterPartitionItem, ...]
