"""Messages between controller and brokers: orders for partitions, and leaders' changes of the ISR."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from msgspec.structs import astuple, replace

from transport.errors import ErrorCode
from transport.messages.common import (
    MAX_LISTED_PARTITIONS,
    BrokerEndpoint,
    Message,
    PartitionError,
    PartitionState,
    Request,
)
from transport.metadata import OfPartition

UNNUMBERED: Final = -1
"""The number of a request in a version without numbers."""


NOT_FAILURES: Final = frozenset(
    (
        ErrorCode.NONE,
        ErrorCode.STALE_CONTROLLER_EPOCH,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
)
"""Outcomes of an order for a partition that do not make its replica a failed one.

The order was carried out, or it is stale, or it is about another topic of that name.
"""


class _Numbered:
    """A request whose `number` does not count for equality."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _unnumbered(other) == _unnumbered(self)

    def __hash__(self) -> int:
        return hash(_unnumbered(self))


def _unnumbered(request: Any) -> tuple[object, ...]:  # noqa: ANN401  any of the requests
    return astuple(replace(request, number=UNNUMBERED))


class LeaderAndIsrPartition(Message, frozen=True):
    """A partition that the broker hosts. `is_new` allows it to create the log (KAFKA-10314)."""

    state: PartitionState
    is_new: bool


class LeaderAndIsrResponse(Message, frozen=True):
    """An outcome for each partition."""

    partitions: tuple[PartitionError, ...]


class LeaderAndIsrRequest(_Numbered, Request[LeaderAndIsrResponse], frozen=True):
    """Lead or follow these partitions. Fenced by the controller's, the broker's and each leader's epoch.

    `number` (since version 1, as in the two other requests) rises with each request to a broker epoch under a
    controller epoch. A retry keeps its number, so that a broker can reject a copy that arrives after later requests.
    """

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[LeaderAndIsrPartition, ...]
    number: int = UNNUMBERED


class UpdateMetadataResponse(Message, frozen=True):
    """Confirmation that the metadata was applied."""


class UpdateMetadataRequest(_Numbered, Request[UpdateMetadataResponse], frozen=True):
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
    number: int = UNNUMBERED


class StopReplicaPartition(OfPartition, Message, frozen=True):
    """Stop a replica, and with `delete` remove its data. `leader_epoch` -2 means that the topic is being deleted."""

    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    delete: bool


class StopReplicaResponse(Message, frozen=True):
    """An outcome for each partition. A partition that the broker does not host counts as stopped."""

    partitions: tuple[PartitionError, ...]


class StopReplicaRequest(_Numbered, Request[StopReplicaResponse], frozen=True):
    """Stop leading or following these partitions."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[StopReplicaPartition, ...]
    number: int = UNNUMBERED


class AlterPartitionItem(OfPartition, Message, frozen=True):
    """The ISR that a leader proposes for one partition, and the epochs that it is based on (KIP-497)."""

    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    new_isr: tuple[int, ...]
    partition_epoch: int
    leader_recovery_state: int = 0


class AlterPartitionResult(OfPartition, Message, frozen=True):
    """The controller's answer to a proposal: the state in effect if `error` is NONE."""

    topic: str
    partition: int
    error: ErrorCode
    leader: int = -1
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    partition_epoch: int = -1
    leader_recovery_state: int = 0


class AlterPartitionResponse(Message, frozen=True):
    """A result for each partition."""

    partitions: tuple[AlterPartitionResult, ...]


class AlterPartitionRequest(Request[AlterPartitionResponse], frozen=True):
    """Ask the controller, as a leader, to change ISRs."""

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    broker_id: int
    broker_epoch: int
    partitions: tuple[AlterPartitionItem, ...]
