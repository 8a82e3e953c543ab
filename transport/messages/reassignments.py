"""Between administrators and the controller: seeing reassignments, each with an identity (KIP-240).

`timeout_ms` is how long the client waits: what the controller cannot answer by then it answers with REQUEST_TIMED_OUT.
`throttle_time_ms` is how long the client was held back by a quota; there is none, so it is 0.
"""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from transport.errors import ErrorCode
from transport.messages.common import MAX_LISTED_PARTITIONS, PartitionError, Request
from transport.metadata import OfPartition

UNTHROTTLED: Final = 2**63 - 1
"""The throttle, in bytes per second, of who is not throttled."""

UNKNOWN: Final = -1
"""A size, a rate or a time that nobody can tell yet."""


@frozen
class ReassignmentKey(OfPartition):
    """A reassignment: of which partition, and the czxid of its znode, which two moves of one partition never share."""

    topic: str
    partition: int
    czxid: int


@frozen
class ListReassignmentsResponse:
    """The reassignments under way, and an error for each partition named that there is not."""

    reassignments: tuple[ReassignmentKey, ...]
    errors: tuple[PartitionError, ...] = ()
    throttle_time_ms: int = 0
    error: ErrorCode = ErrorCode.NONE
    message: str = ""


@frozen
class ListReassignmentsRequest(Request[ListReassignmentsResponse]):
    """List the reassignments under way, of all partitions or of those named as (topic, partition) (KIP-240)."""

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    partitions: tuple[tuple[str, int], ...] | None = None
    timeout_ms: int = 30_000


@frozen
class ReplicaProgress:
    """How far a replica that is to join the ISR has come, as its broker and the leader said when they were last asked.

    `log_bytes` is the size of its log, `leader_bytes` that of the leader's; UNKNOWN until they were told, as is the
    `log_end_offset`. `throttle` is the follower's, in bytes per second.
    """

    broker: int
    log_end_offset: int = UNKNOWN
    offset_lag: int = UNKNOWN
    log_bytes: int = UNKNOWN
    leader_bytes: int = UNKNOWN
    in_sync: bool = False
    throttle: int = UNTHROTTLED


@frozen
class ReassignmentDescription(OfPartition):
    """A reassignment under way. Times are in ms since 1970, sizes in bytes, rates in bytes per second.

    `replicas` to `isr` are what the partition has now, `new_replicas` those it is to have, preferred leader first, and
    `progress` has an entry for each of these. `waits_for` says in words what it waits for, naming brokers. `rate` is
    over the last samples, `eta_ms` how long the rest takes at that rate; both UNKNOWN where nothing moves yet.
    `stalled_since_ms` is when the last byte came while something still had to come, UNKNOWN if it is not stalled.
    `setback` says why there is less of it than there was, the last time that this happened.
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


@frozen
class DescribeReassignmentsResponse:
    """What goes on; a reassignment that is over, or was never there, is left out.

    `rate` is what all that is under way gains in bytes per second, what was completed in the last seconds included, and
    `eta_ms` how long all that is under way takes at that rate; UNKNOWN where nothing moves yet.
    """

    reassignments: tuple[ReassignmentDescription, ...]
    throttle_time_ms: int = 0
    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    rate: int = UNKNOWN
    eta_ms: int = UNKNOWN


@frozen
class DescribeReassignmentsRequest(Request[DescribeReassignmentsResponse]):
    """Describe reassignments, those of the keys or all that are under way (KIP-240)."""

    max_listed: ClassVar[int | None] = MAX_LISTED_PARTITIONS

    reassignments: tuple[ReassignmentKey, ...] | None = None
    timeout_ms: int = 30_000
