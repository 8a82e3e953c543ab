"""Messages between administrators and the controller: listing and describing reassignments by identity (KIP-240).

`timeout_ms` is the time that the client waits; after it the controller answers with REQUEST_TIMED_OUT.
`throttle_time_ms` is the time that a quota delayed the client; there are no quotas, so it is 0.
"""

from __future__ import annotations

from typing import ClassVar, Final

from transport.errors import ErrorCode
from transport.messages.common import MAX_LISTED_PARTITIONS, Message, PartitionError, Request
from transport.metadata import OfPartition, OfReplicas, TopicPartition

UNTHROTTLED: Final = 2**63 - 1
"""The rate, in bytes per second, that means no throttle."""

UNKNOWN: Final = -1
"""A size, rate or time that is not known yet."""


class ReassignmentKey(OfPartition, Message, frozen=True):
    """A reassignment: its partition, and the czxid of its znode, which differs for each move of a partition."""

    topic: str
    partition: int
    czxid: int


class ListReassignmentsResponse(Message, frozen=True):
    """The reassignments in progress, and an error for each requested partition that does not exist."""

    reassignments: tuple[ReassignmentKey, ...]
    errors: tuple[PartitionError, ...] = ()
    throttle_time_ms: int = 0
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


class ListReassignmentsRequest(Request[ListReassignmentsResponse], frozen=True):
    """List the reassignments in progress of all partitions, or of those given (KIP-240)."""

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    partitions: tuple[TopicPartition, ...] | None = None
    timeout_ms: int = 30_000


class ReplicaProgress(Message, frozen=True):
    """The progress of a replica towards the ISR, as last reported by its broker and by the leader.

    `log_bytes` is the size of its log and `leader_bytes` that of the leader's log. Both, and `log_end_offset`, are
    UNKNOWN until reported. `throttle` is the follower's rate in bytes per second.
    """

    broker: int
    log_end_offset: int = UNKNOWN
    offset_lag: int = UNKNOWN
    log_bytes: int = UNKNOWN
    leader_bytes: int = UNKNOWN
    in_sync: bool = False
    throttle: int = UNTHROTTLED


class ReassignmentDescription(OfPartition, OfReplicas, Message, frozen=True):
    """A reassignment in progress. Times are in ms since 1970, sizes in bytes, rates in bytes per second.

    `replicas` to `isr` are the current state of the partition. `new_replicas` is the target, preferred leader first,
    and `progress` has an entry for each replica of it. `waits_for` says in words what the reassignment waits for,
    naming brokers. `rate` covers the last samples, and `eta_ms` is the remaining time at this rate; both are UNKNOWN
    until something moves. `stalled_since_ms` is the time of the last byte if more was due since, UNKNOWN if the
    reassignment is not stalled. `setback` is the reason for the latest loss of progress.
    """

    topic: str
    partition: int
    czxid: int
    start_time_ms: int
    leader: int
    leader_throttle: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    isr: tuple[int, ...]
    new_replicas: tuple[int, ...]
    progress: tuple[ReplicaProgress, ...]
    waits_for: str = ""
    rate: int = UNKNOWN
    eta_ms: int = UNKNOWN
    stalled_since_ms: int = UNKNOWN
    setback: str = ""


class DescribeReassignmentsResponse(Message, frozen=True):
    """The reassignments in progress; those that have ended, or never existed, are left out.

    `rate` is the total progress in bytes per second, including reassignments completed in the last seconds, and
    `eta_ms` the remaining time of all reassignments at this rate. Both are UNKNOWN until something moves.
    """

    reassignments: tuple[ReassignmentDescription, ...]
    throttle_time_ms: int = 0
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    rate: int = UNKNOWN
    eta_ms: int = UNKNOWN


class DescribeReassignmentsRequest(Request[DescribeReassignmentsResponse], frozen=True):
    """Describe the reassignments with these keys, or all that are in progress (KIP-240)."""

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    reassignments: tuple[ReassignmentKey, ...] | None = None
    timeout_ms: int = 30_000
