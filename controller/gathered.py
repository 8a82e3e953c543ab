"""The lists that grow while an event waits in the queue: what comes later joins it, so one event of a kind suffices."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from itertools import islice
from typing import Final

from attrs import define, field, frozen

from transport.errors import ErrorCode
from transport.messages import (
    NOT_FAILURES,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from transport.metadata import TopicPartition

LOOKED_AT_TOGETHER: Final = 500
"""The most topics of one event. With 50 partitions each they take about 0.1 s, and other events wait that long."""


class ReplicaOrder(Enum):
    """An order for one replica."""

    LEAD = "lead"
    FOLLOW = "follow"
    STOP = "stop"


@frozen
class Outcome:
    """What a broker answered to an order for a replica, of this leader epoch: NONE if it was carried out."""

    order: ReplicaOrder
    leader_epoch: int
    error: ErrorCode = ErrorCode.NONE
    reason: str = ""


@define(eq=False)
class Outcomes:
    """A broker incarnation's latest answers to the orders for its replicas, except those that delete.

    They are kept until the event queue takes them. Until the first failure no replica has failed, so successes are
    recorded only after one. Of Kafka brokers only KAFKA_STORAGE_ERROR counts as a failure.
    """

    are_kafkas: bool = False
    _latest: dict[tuple[str, TopicPartition], Outcome] = field(factory=dict, init=False)
    _has_failed: bool = field(default=False, init=False)

    def gather(self, broker_id: int, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse) -> bool:
        """Add an answer; return whether it must be processed."""
        if not self._must_be_taken(response.partitions):
            return False
        states = {item.state.tp: item.state for item in request.partitions}
        for item in response.partitions:
            state = states.get(item.tp)
            if state is not None and self._counts(item.error):
                order = ReplicaOrder.LEAD if state.leader == broker_id else ReplicaOrder.FOLLOW
                self._latest[state.topic_id, item.tp] = Outcome(order, state.leader_epoch, item.error, item.message)
        return True

    def gather_stops(self, request: StopReplicaRequest, response: StopReplicaResponse) -> bool:
        """Add an answer to orders to stop; return whether it must be processed."""
        stops = {item.tp: item for item in request.partitions if not item.delete}
        # A deletion of topics has no others, for each of many replicas.
        answers = [item for item in response.partitions if item.tp in stops] if stops else []
        if self.are_kafkas or not self._must_be_taken(answers):
            return False
        for item in answers:
            if self._counts(item.error):
                stop = stops[item.tp]
                outcome = Outcome(ReplicaOrder.STOP, stop.leader_epoch, item.error, item.message)
                self._latest[stop.topic_id, item.tp] = outcome
        return True

    def _must_be_taken(self, answers: Iterable[PartitionError]) -> bool:
        errors = {item.error for item in answers}
        self._has_failed = self._has_failed or any(map(self._is_failure, errors))
        return self._has_failed and any(map(self._counts, errors))

    def _is_failure(self, error: ErrorCode) -> bool:
        return error is ErrorCode.KAFKA_STORAGE_ERROR if self.are_kafkas else error not in NOT_FAILURES

    def _counts(self, error: ErrorCode) -> bool:
        return error is ErrorCode.NONE or self._is_failure(error)

    def take(self) -> dict[tuple[str, TopicPartition], Outcome]:
        """Remove and return the latest answer for each replica, by topic id and partition."""
        latest, self._latest = self._latest, {}
        return latest


@define(eq=False)
class MoreTopics:
    """The topics that join a waiting event, until it is processed or dropped."""

    _names: dict[str, None] = field(factory=dict, init=False)
    _is_closed: bool = field(default=False, init=False)

    def __len__(self) -> int:
        return len(self._names)

    def add(self, name: str) -> bool:
        """Let a topic join; return whether there was time and room for it."""
        if self._is_closed or len(self._names) >= LOOKED_AT_TOGETHER - 1:
            return False
        self._names[name] = None
        return True

    def close(self) -> tuple[str, ...]:
        """Return the topics that have joined; no others will."""
        self._is_closed = True
        return tuple(self._names)


@define(eq=False)
class CaughtUp:
    """Partitions that are ready for phase B of their reassignment, until the event queue takes them."""

    _tps: dict[TopicPartition, None] = field(factory=dict, init=False)

    def add(self, tps: Iterable[TopicPartition]) -> None:
        """Add partitions."""
        self._tps.update(dict.fromkeys(tps))

    def __len__(self) -> int:
        return len(self._tps)

    def take(self, most: int) -> list[TopicPartition]:
        """Remove and return the partitions that have waited longest."""
        taken = list(islice(self._tps, most))
        for tp in taken:
            del self._tps[tp]
        return taken
