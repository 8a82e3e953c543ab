"""Replicas of live brokers that failed to carry out an order, and when each may be tried again.

A failure lasts until the broker carries out the order, starts again, or no longer holds the replica: the table holds at
most one entry for each assigned replica. A new controller begins with an empty table, and orders every replica again.

1. A replica that failed to lead follows and stays in the ISR. It may lead again after 10 s, 20 s, 40 s, then 60 s,
   also if it fails to follow meanwhile and recovers from that.
2. A replica that failed to follow leaves the ISR, unless it is the last member. Its order is repeated after 2 s, 4 s,
   8 s and so on, at least every 60 s. This also holds for a log that cannot be used (KAFKA_STORAGE_ERROR), whatever
   the order.
3. While every member of the ISR has failed, the leader stays, and its order is repeated after the same times as in 2.
   When another member may lead again, it is elected: at most every 10 s, and 6 times a minute.
4. While a member leads, no other may lead again as long as failures have caused two elections within a minute: where
   several replicas fail each time, each return of leadership costs several elections.
5. A replica that may lead again keeps its number of failures until it leads. So automatic preferred elections give
   leadership to a replica that fails each time less and less often.
6. A stop that failed is repeated as in 2, as long as the replica must not follow.
7. A replica that failed to follow is stopped. So only an order that was sent after the controller knew of the failure
   ends it: one of a later leader epoch, or one that was repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from attrs import define, evolve, field, frozen

from controller.gathered import ReplicaOrder
from transport.errors import ErrorCode
from transport.metadata import TopicPartition

REPEAT_SECONDS: Final = 2.0
"""The delay before an order is repeated for the first time."""

LEAD_AGAIN_SECONDS: Final = 10.0
"""The delay before a replica that failed to lead may lead again for the first time, and between such elections."""

MAX_SECONDS: Final = 60.0
"""The longest delay. Each failure doubles it."""

MAX_ELECTIONS: Final = 6
"""The most elections of a partition within `MAX_SECONDS` while all members of its ISR fail."""

MAX_ELECTIONS_IF_LED: Final = 2
"""The elections of a partition within `MAX_SECONDS` after which no member that failed takes leadership back."""

_MAX_DOUBLINGS: Final = 5


@frozen
class ReplicaFailure:
    """The last failure of a replica: the order, the broker's error, and when it was answered or last repeated.

    `at` is a time of trio's clock. `failures` counts those in a row. `leader_epoch` is the partition's when the
    controller learned of the first of them that keeps the replica from following.
    """

    order: ReplicaOrder
    error: ErrorCode
    reason: str
    at: float
    failures: int = 1
    leader_epoch: int = -1
    is_over: bool = False
    """Whether the replica may lead again, though it has not led since."""

    is_repeated: bool = False
    """Whether an order has been sent again since then."""

    to_lead: ReplicaFailure | None = None
    """The failure to lead before this one to follow, which counts again once the replica follows: see 1 above."""

    @property
    def is_of_log(self) -> bool:
        """Whether the broker cannot use the replica's log."""
        return self.error is ErrorCode.KAFKA_STORAGE_ERROR

    @property
    def keeps_from_following(self) -> bool:
        """Whether the replica neither leads nor follows."""
        return self.is_of_log or self.order is ReplicaOrder.FOLLOW

    @property
    def keeps_from_leading(self) -> bool:
        """Whether others have to lead while they can."""
        return not self.is_over and self.order is not ReplicaOrder.STOP

    def after(self, before: ReplicaFailure | None) -> ReplicaFailure:
        """Return this failure as the one that comes after `before`, if there was any."""
        if before is None:
            return self
        is_to_lead = before.order is ReplicaOrder.LEAD and not before.is_of_log
        to_lead = (before if is_to_lead else before.to_lead) if self.keeps_from_following else None
        failure = evolve(self, failures=before.failures + 1, to_lead=to_lead)
        if not before.keeps_from_following:
            return failure
        # The replica has been stopped before.
        return evolve(failure, leader_epoch=before.leader_epoch, is_repeated=before.is_repeated)

    def is_ended_by(self, leader_epoch: int) -> bool:
        """Return whether an order to follow of a leader epoch ends the failure once it is carried out: see 7 above."""
        return self.is_repeated or leader_epoch > self.leader_epoch

    def next_try(self, *, leads: bool) -> float:
        """Return when the order is due again, or when the replica may lead again if it does not `lead` now."""
        waits_to_lead = self.order is ReplicaOrder.LEAD and not self.is_of_log and not leads
        first = LEAD_AGAIN_SECONDS if waits_to_lead else REPEAT_SECONDS
        return self.at + min(MAX_SECONDS, first * (1 << min(self.failures - 1, _MAX_DOUBLINGS)))


@frozen
class ReplicaFailed:
    """A live broker has failed to carry out an order for one of its replicas."""

    replica: tuple[TopicPartition, int]
    failure: ReplicaFailure


@frozen
class ReplicaOrderedAgain:
    """The order that failed last is sent again, at a time of trio's clock."""

    replica: tuple[TopicPartition, int]
    at: float


@frozen
class ReplicaForgiven:
    """A replica that failed to lead may lead again."""

    replica: tuple[TopicPartition, int]


@frozen
class ReplicaRecovered:
    """A broker has carried out an order for a replica that had failed before, or the order is void."""

    replica: tuple[TopicPartition, int]


@frozen
class FailedLeaderReplaced:
    """Failures have caused an election of a partition, at a time of trio's clock."""

    tp: TopicPartition
    at: float


FailureFact = ReplicaFailed | ReplicaOrderedAgain | ReplicaForgiven | ReplicaRecovered | FailedLeaderReplaced


@define
class ReplicaFailures(Mapping[tuple[TopicPartition, int], ReplicaFailure]):
    """The last failure of each replica that has failed and not carried out an order since."""

    _failures: dict[tuple[TopicPartition, int], ReplicaFailure] = field(factory=dict, init=False)
    _counts: dict[TopicPartition, int] = field(factory=dict, init=False)
    """The number of failed replicas of each partition with any."""

    _elections: dict[TopicPartition, tuple[float, ...]] = field(factory=dict, init=False)
    """The times of the last elections that failures have caused, of partitions with failures."""

    def __getitem__(self, replica: tuple[TopicPartition, int]) -> ReplicaFailure:
        return self._failures[replica]

    def __iter__(self) -> Iterator[tuple[TopicPartition, int]]:
        return iter(self._failures)

    def __len__(self) -> int:
        return len(self._failures)

    def take(self, fact: FailureFact) -> None:
        """Take a fact that was committed or observed."""
        match fact:
            case ReplicaFailed():
                if fact.replica not in self._failures:
                    self._counts[fact.replica[0]] = self._counts.get(fact.replica[0], 0) + 1
                self._failures[fact.replica] = fact.failure
            case ReplicaOrderedAgain():
                failure = self._failures[fact.replica]
                self._failures[fact.replica] = evolve(failure, at=fact.at, is_repeated=True)
            case ReplicaForgiven():
                self._failures[fact.replica] = evolve(self._failures[fact.replica], is_over=True)
            case ReplicaRecovered():
                self.forget(fact.replica)
            case FailedLeaderReplaced():
                self._elections[fact.tp] = (*self._elections.get(fact.tp, ()), fact.at)[-MAX_ELECTIONS:]

    def forget(self, replica: tuple[TopicPartition, int]) -> None:
        """Forget a replica's failures, if there are any."""
        if self._failures.pop(replica, None) is None:
            return
        tp = replica[0]
        self._counts[tp] -= 1
        if self._counts[tp] == 0:
            del self._counts[tp]
            self._elections.pop(tp, None)

    def forget_broker(self, broker_id: int) -> None:
        """Forget the failures of a broker's incarnation."""
        for replica in [replica for replica in self._failures if replica[1] == broker_id]:
            self.forget(replica)

    def next_election(self, tp: TopicPartition, *, is_led: bool) -> float:
        """Return when a member that failed may lead again, as far as earlier elections matter: see 3 and 4 above."""
        times = self._elections.get(tp, ())
        most = MAX_ELECTIONS_IF_LED if is_led else MAX_ELECTIONS
        at = times[-most] + MAX_SECONDS if len(times) >= most else 0.0
        return at if is_led or not times else max(at, times[-1] + LEAD_AGAIN_SECONDS)
