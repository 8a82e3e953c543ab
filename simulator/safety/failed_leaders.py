"""Check that leadership is not given back at once to a replica that failed to lead, and that elections are bounded.

This needs no knowledge of what a controller has made of the answers: only the times at which they reached it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from attrs import define, field

from simulator.model.view import Standing
from simulator.safety.log_reports import Incarnation, LogReport
from simulator.safety.partitions import PartitionChange
from transport.metadata import NO_LEADER, TopicPartition

LEAD_AGAIN_SECONDS: Final = 10.0
"""The least time before an automatic preferred election lets a replica lead again that failed to."""

MAX_ELECTIONS: Final = 6
"""The most elections within a minute that failures cause, unless a partition has more replicas than that."""

_MINUTE: Final = 60.0
_OF_FAILURES: Final = ("LeaderAndIsrResponseReceived", "FailedReplicasDue")
_AUTOMATIC: Final = "AutoPreferredReplicaLeaderElection"


@define
class FailedLeaders:
    """The last failure to lead of each broker, and the elections that failures have caused."""

    _failed_at: dict[TopicPartition, dict[Incarnation, float]] = field(factory=dict, init=False)
    _elections: dict[TopicPartition, deque[float]] = field(factory=dict, init=False)
    _controller_epoch: int = field(default=-1, init=False)

    def reported(self, report: LogReport, now: float) -> None:
        """Record a report as the controller receives it."""
        if report.controller_epoch != self._controller_epoch:
            # A new controller knows nothing of failures.
            self._controller_epoch = report.controller_epoch
            self._failed_at.clear()
            self._elections.clear()
        failed_at = self._failed_at.setdefault(report.tp, {})
        # Another incarnation of the broker has not failed.
        for broker in [broker for broker in failed_at if broker[0] == report.broker[0] and broker != report.broker]:
            del failed_at[broker]
        if report.failure is Standing.UNFIT:
            failed_at[report.broker] = now
        elif report.leads:
            failed_at.pop(report.broker, None)

    def changed(self, change: PartitionChange, event: str, now: float) -> Iterator[str]:
        """Check a change that a controller commits while it processes an event."""
        tp, before, after = change.tp, change.before, change.after
        if after is None or not change.is_of_one_topic:
            self._failed_at.pop(tp, None)
            self._elections.pop(tp, None)
            return
        if before is None or before.leadership is None or after.leadership is None:
            return
        leader = after.leadership.leader
        if leader in (before.leadership.leader, NO_LEADER):
            return
        if event == _AUTOMATIC and after.leadership.controller_epoch == self._controller_epoch:
            since = max((at for (id_, _), at in self._failed_at.get(tp, {}).items() if id_ == leader), default=None)
            if since is not None and now - since < LEAD_AGAIN_SECONDS:
                yield f"{tp}: broker {leader} leads again {now - since:.1f} s after it failed to"
        elif event in _OF_FAILURES:
            times = self._elections.setdefault(tp, deque(maxlen=64))
            times.append(now)
            count = sum(now - _MINUTE < at for at in times)
            if count > max(MAX_ELECTIONS, len(after.assignment.replicas)):
                yield f"{tp}: failures have caused {count} elections within a minute"
