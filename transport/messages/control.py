"""Between controller and brokers: what a partition is to be, and what its leader wants its ISR to be."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import field, frozen

from transport.errors import ErrorCode
from transport.messages.common import MAX_LISTED_PARTITIONS, BrokerEndpoint, PartitionError, PartitionState, Request
from transport.metadata import OfPartition

UNNUMBERED: Final = -1
"""The number of a request in whose version requests have none."""


@frozen
class LeaderAndIsrPartition:
    """A partition that the broker holds. `is_new` lets it create the log (KAFKA-10314)."""

    state: PartitionState
    is_new: bool


@frozen
class LeaderAndIsrResponse:
    """An outcome for each partition."""

    partitions: tuple[PartitionError, ...]


@frozen
class LeaderAndIsrRequest(Request[LeaderAndIsrResponse]):
    """Lead or follow these partitions. Fenced by the controller's, the broker's and each leader's epoch.

    `number`, since version 1 and in the other requests too, rises with each request to one broker epoch under one
    controller epoch. A repeated one keeps it, so that a copy that arrives after later requests is known for what it is.
    """

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[LeaderAndIsrPartition, ...]
    number: int = field(default=UNNUMBERED, eq=False)


@frozen
class UpdateMetadataResponse:
    """The metadata was taken."""


@frozen
class UpdateMetadataRequest(Request[UpdateMetadataResponse]):
    """These partitions changed; `live_brokers`, unless it is None, is the complete list; `controller` listens there.

    So is `topics`, since version 1, as (name, topic id), with the id "" if it is not known: who missed that a topic was
    deleted forgets it.
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
    """Stop this replica, and with `delete` remove its data. `leader_epoch` -2 means the topic is being deleted."""

    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    delete: bool


@frozen
class StopReplicaResponse:
    """An outcome for each partition; one that the broker does not hold counts as stopped."""

    partitions: tuple[PartitionError, ...]


@frozen
class StopReplicaRequest(Request[StopReplicaResponse]):
    """Stop following or leading these partitions."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[StopReplicaPartition, ...]
    number: int = field(default=UNNUMBERED, eq=False)


@frozen
class AlterPartitionItem(OfPartition):
    """The ISR that a leader wants for one partition, against the epochs it knows (KIP-497)."""

    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    new_isr: tuple[int, ...]
    partition_epoch: int
    leader_recovery_state: int = 0


@frozen
class AlterPartitionResult(OfPartition):
    """What the controller made of it: the state in force if `error` is NONE."""

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
    """A leader asks the controller to change ISRs."""

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    broker_id: int
    broker_epoch: int
    partitions: tuple[AlterPartitionItem, ...]
