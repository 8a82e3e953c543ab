"""A line for each partition and replica that changes, with its cause: Kafka's state-change.log, as JSON.

It is off, at no cost, unless a file is configured. The file is rotated, so it does not grow without bound.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final

import orjson
from attrs import define, field

from controller.model import facts
from controller.model.context import ControllerContext
from controller.model.facts import Fact, Replica, words
from controller.model.known_topics import UNASSIGNED
from controller.model.replica_failures import FailedLeaderReplaced, FailureFact, ReplicaFailed
from controller.model.state_machines import PARTITION_TRANSITIONS, REPLICA_TRANSITIONS, PartitionPhase, ReplicaPhase
from controller.observation.instruments import Application, Instrument
from transport.log import get_logger
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition

MAX_BYTES: Final = 100 * 1024 * 1024
"""The size at which the file is renamed and a new one begun."""

BACKUPS: Final = 4
"""The number of renamed files that are kept."""

LINES_AT_ONCE: Final = 1000
"""The number of lines written at once, because a write costs more than a line."""

Line = dict[str, Any]

_log = get_logger(__name__)


@define
class StateChangeLog(Instrument):
    """Writes the changes of each application as lines of JSON."""

    write: Callable[[str], None]
    now_ms: Callable[[], int]

    def applying(self, context: ControllerContext, application: Application) -> None:
        """Write a line per change."""
        time = datetime.fromtimestamp(self.now_ms() / 1000, UTC).isoformat(timespec="milliseconds")
        cause: Line = {
            "event_id": application.event_id,
            "during": application.event,
            "round": application.round,
            "zxid": application.zxid,
        }
        changes = _Changes(context)
        lines = ({"time": time, **line, **cause} for fact in application.facts for line in changes.of(fact))
        while block := [orjson.dumps(line).decode() for line in islice(lines, LINES_AT_ONCE)]:
            self.write("\n".join(block))


@contextmanager
def open_state_change_log(path: Path, now_ms: Callable[[], int]) -> Iterator[StateChangeLog]:
    """Append to a file within the block. Raises OSError if it cannot be written."""
    handler = _Handler(path, maxBytes=MAX_BYTES, backupCount=BACKUPS, encoding="utf-8")
    logger = logging.Logger("state.change.logger")  # noqa: LOG001  its own, in nobody's hierarchy
    logger.addHandler(handler)
    try:
        yield StateChangeLog(logger.info, now_ms)
    finally:
        # Closing tries once more to write lines whose loss has been logged already.
        with suppress(OSError):
            handler.close()


class _Handler(RotatingFileHandler):
    """Reports in the controller's log, once each, that the file cannot be written and that it can be again."""

    _is_failing = False
    _has_failed = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write lines, or drop them."""
        self._has_failed = False
        super().emit(record)
        if self._is_failing and not self._has_failed:
            _log.info("the state-change log is written again: it lacks some changes", path=self.baseFilename)
        self._is_failing = self._has_failed

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802, ARG002  as logging calls it
        """Log the error, unless it has been logged already."""
        self._has_failed = True
        if not self._is_failing:
            reason = str(sys.exc_info()[1])
            _log.error("the state-change log cannot be written: free disk space", path=self.baseFilename, reason=reason)


@define
class _Changes:
    """The successive changes made by facts that have not been applied to the context yet."""

    context: ControllerContext
    _leadership: dict[TopicPartition, LeaderAndIsr] = field(factory=dict, init=False)
    _partitions: dict[TopicPartition, PartitionPhase] = field(factory=dict, init=False)
    _replicas: dict[Replica, ReplicaPhase] = field(factory=dict, init=False)

    def of(self, fact: Fact) -> Iterator[Line]:
        """Yield a line for each partition, replica or broker that a fact changes."""
        match fact:
            case facts.LeadershipsWritten():
                yield from map(self._leadership_written, fact.tps, fact.leaderships)
            case facts.PartitionsMoved():
                for tp in fact.tps:
                    yield from self._partition_moved(tp, fact.phase)
            case facts.ReplicasMoved():
                for replica in fact.replicas:
                    yield from self._replica_moved(replica, fact.phase)
            case facts.PartitionsFound():
                yield from self._partitions_found(fact)
            case facts.TopicWritten():
                yield from self._topic_written(fact)
            case facts.BrokerRegistered(registration=broker):
                yield {"change": "broker registered", "broker": broker.id, "broker_epoch": broker.epoch}
            case facts.BrokerGone(broker_id=broker_id):
                yield {"change": "broker gone", "broker": broker_id}
            case _:
                yield {"change": words(type(fact)), **_subject(fact)}

    def _leadership_written(self, tp: TopicPartition, new: LeaderAndIsr) -> Line:
        before = self._leadership.get(tp) or self.context.leadership.get(tp)
        self._leadership[tp] = new
        return {
            "change": "leadership",
            "partition": str(tp),
            "leader_before": None if before is None else before.leader,
            "leader": new.leader,
            "isr_before": None if before is None else before.isr,
            "isr": new.isr,
            "leader_epoch": new.leader_epoch,
            "partition_epoch": new.partition_epoch,
            "controller_epoch": new.controller_epoch,
        }

    def _partitions_found(self, fact: facts.PartitionsFound) -> Iterator[Line]:
        for tp, leadership, (partition, replicas) in zip(fact.tps, fact.leaderships, fact.rows, strict=True):
            if leadership is not None:
                yield self._leadership_written(tp, leadership)
            if partition is not None:
                yield from self._partition_moved(tp, partition, is_found=True)
            for broker_id, phase in zip(self.context.assignment(tp).replicas, replicas, strict=True):
                if phase is not None:
                    yield from self._replica_moved((tp, broker_id), phase, is_found=True)

    def _partition_moved(self, tp: TopicPartition, to: PartitionPhase, *, is_found: bool = False) -> Iterator[Line]:
        known = self.context.partition_phases.get(tp, PartitionPhase.NON_EXISTENT)
        before = self._partitions.get(tp, known)
        if to is before:
            return
        is_legal = is_found or to in PARTITION_TRANSITIONS[before]
        if is_legal:
            self._partitions[tp] = to
        yield {"change": _transition("partition", is_legal=is_legal), "partition": str(tp), **_way(before, to)}

    def _replica_moved(self, replica: Replica, to: ReplicaPhase, *, is_found: bool = False) -> Iterator[Line]:
        (tp, broker_id), known = replica, self.context.replica_phases.get(replica, ReplicaPhase.NON_EXISTENT)
        before = self._replicas.get(replica, known)
        if to is before:
            return
        is_legal = is_found or to in REPLICA_TRANSITIONS[before]
        if is_legal:
            self._replicas[replica] = to
        change = _transition("replica", is_legal=is_legal)
        yield {"change": change, "partition": str(tp), "broker": broker_id, **_way(before, to)}

    def _topic_written(self, fact: facts.TopicWritten) -> Iterator[Line]:
        known = self.context.topics.get(fact.name)
        before = {} if known is None else known.znode.partitions
        for number, assignment in fact.znode.partitions.items():
            old = before.get(number, UNASSIGNED)
            if old != assignment:
                yield _assignment_line(TopicPartition(fact.name, number), old, assignment)


def _transition(machine: str, *, is_legal: bool) -> str:
    return f"{machine} state" if is_legal else f"illegal {machine} transition refused"


def _way(before: PartitionPhase | ReplicaPhase, to: PartitionPhase | ReplicaPhase) -> Line:
    return {"before": before.value, "to": to.value}


def _assignment_line(tp: TopicPartition, before: ReplicaAssignment, assignment: ReplicaAssignment) -> Line:
    return {
        "change": "assignment",
        "partition": str(tp),
        "replicas_before": before.replicas,
        "replicas": assignment.replicas,
        "adding_replicas": assignment.adding_replicas,
        "removing_replicas": assignment.removing_replicas,
    }


def _subject(fact: object) -> Line:
    """Return only the subject of a fact: its other contents, such as settings, may be secret."""
    if isinstance(fact, FailureFact):
        return _failing(fact)
    names = ("tp", "name", "topic", "broker_id", "stray")
    return {name: str(getattr(fact, name)) for name in names if hasattr(fact, name)}


def _failing(fact: FailureFact) -> Line:
    """Return the replica of a failure or its end, and why it failed."""
    if isinstance(fact, FailedLeaderReplaced):
        return {"partition": str(fact.tp)}
    (tp, broker_id), line = fact.replica, {}
    if isinstance(fact, ReplicaFailed):
        failure = fact.failure
        line = {"order": failure.order.value, "reason": failure.reason, "failures": failure.failures}
    return {"partition": str(tp), "broker": broker_id, **line}
