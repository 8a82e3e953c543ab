"""Event ids, which all log lines of an event's processing carry, and one summary line per event that changed something.

An id is the controller epoch and a sequence number within it ("7-1234"): 7-0 is the failover that began controllership
7. A process that has never been in office uses epoch 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import structlog
from attrs import define, field

from controller.channels.broker_channels import BrokerChannels
from controller.events import ControllerEvent
from controller.model import facts, rollout_facts
from controller.model.context import ControllerContext
from controller.model.facts import Fact, leaderships_in, words
from controller.model.state_machines import PartitionPhase
from controller.observation.decisions import MAX_EXAMPLES, Decision, Decisions, Example, examples_of
from controller.observation.instruments import Application, Instrument
from transport.host import Host
from transport.log import get_logger
from transport.metadata import TopicPartition

log = get_logger(__name__)

_BROKERS: Final = frozenset({facts.BrokerGone, facts.BrokerRegistered, facts.BrokerUnusable})
_LOOKS: Final = frozenset(
    {
        facts.ConfigChangesSeen,
        rollout_facts.MovesChosen,
        rollout_facts.RolloutSeen,
        rollout_facts.RolloutsSettled,
        rollout_facts.RoomTold,
    }
)
"""The facts that record what was found, and change nothing."""

_TOLD_APART: Final = (
    _BROKERS
    | _LOOKS
    | {
        facts.LeadershipsWritten,
        facts.PartitionsMoved,
        facts.PartitionsFound,
        facts.ReplicasMoved,
    }
)
_PHASES: Final = {
    PartitionPhase.NEW: "partitions_new",
    PartitionPhase.ONLINE: "partitions_online",
    PartitionPhase.OFFLINE: "partitions_offline",
    PartitionPhase.NON_EXISTENT: "partitions_gone",
}
_FACTS: Final = {
    facts.TopicWritten: "topics",
    facts.TopicGone: "topics_gone",
}


@define
class EventLog(Instrument):
    """Numbers events, summarizes what they change, and keeps the latest summaries."""

    decisions: Decisions = field(factory=lambda: Decisions(Host().now_ms))
    event_id: str = field(default="0-0", init=False)
    """The id of the current event, or of the last one processed."""

    _name: str = field(default="", init=False)
    _cause: str | None = field(default=None, init=False)
    _epoch: int = field(default=0, init=False)
    _sequence: int = field(default=0, init=False)
    _queued_seconds: float = field(default=0.0, init=False)
    _changes: Counter[str] = field(factory=Counter, init=False)
    _brokers: dict[str, list[int]] = field(factory=dict, init=False)
    _examples: list[Example] = field(factory=list, init=False)
    _causes: dict[ControllerEvent, str] = field(factory=dict, init=False)
    """The id of the event that caused each waiting follow-up; cleared when the office ends."""

    def started(self, event: ControllerEvent, queued_seconds: float) -> None:
        """Assign the event its id."""
        self._sequence += 1
        self._queued_seconds = queued_seconds
        self._changes, self._brokers, self._examples = Counter(), {}, []
        self._bind(event.name)
        self._cause = self._causes.pop(event, None)
        if self._cause is not None:
            structlog.contextvars.bind_contextvars(caused_by=self._cause)

    def calls_for(self, event: ControllerEvent) -> None:
        """Record that the current event causes another one."""
        self._causes[event] = self.event_id

    def left_office(self) -> None:
        """Forget the causes of waiting events."""
        self._causes.clear()

    def took_office(self, context: ControllerContext, channels: BrokerChannels) -> None:  # noqa: ARG002
        """Restart the sequence: the failover is number 0."""
        self._epoch, self._sequence = context.epoch, 0
        self._bind("Failover")

    def finished(self, event: ControllerEvent, seconds: float) -> None:  # noqa: ARG002
        """Log what the event changed, if anything."""
        if self._changes or self._brokers:
            times = {"seconds": round(seconds, 6), "queued_seconds": round(self._queued_seconds, 6)}
            changes = dict(sorted(self._changes.items()))
            log.info("changed", **self._brokers, **changes, **times)
            self.decisions.add(self._decision(seconds, changes))
        structlog.contextvars.unbind_contextvars("event_id", "during", "caused_by")

    def applying(self, context: ControllerContext, application: Application) -> None:
        """Count the changes of an application."""
        applied = application.facts
        self._changes.update(_counts(context, applied))
        for name, broker_id in _brokers(applied):
            self._brokers.setdefault(name, []).append(broker_id)
        if application.zxid is not None:
            self._changes["commits"] += 1
        if len(self._examples) < MAX_EXAMPLES:
            self._examples += islice(examples_of(context, application, applied), MAX_EXAMPLES - len(self._examples))

    def _decision(self, seconds: float, changes: dict[str, int]) -> Decision:
        at, examples = self.decisions.now_ms(), tuple(self._examples)
        return Decision(self.event_id, self._name, at, seconds, self._cause, self._brokers, changes, examples)

    def _bind(self, name: str) -> None:
        self._name = name
        self.event_id = f"{self._epoch}-{self._sequence}"
        structlog.contextvars.bind_contextvars(event_id=self.event_id, during=name)


def _brokers(applied: Sequence[Fact]) -> Iterator[tuple[str, int]]:
    if _BROKERS.isdisjoint(map(type, applied)):
        return
    for fact in applied:
        match fact:
            case facts.BrokerRegistered(registration=broker):
                yield "brokers_registered", broker.id
            case facts.BrokerUnusable(broker_id=broker_id):
                yield "brokers_unusable", broker_id
            case facts.BrokerGone(broker_id=broker_id):
                yield "brokers_gone", broker_id
            case _:
                pass


def _counts(context: ControllerContext, applied: Sequence[Fact]) -> Counter[str]:
    kinds = Counter(map(type, applied))
    counts = Counter(
        {_FACTS.get(kind) or words(kind).replace(" ", "_"): n for kind, n in kinds.items() if kind not in _TOLD_APART}
    )
    counts.update(_leadership_counts(context, applied))
    last = _last_phases(applied)
    known = context.partition_phases.of_all(last)
    counts.update(_PHASES[phase] for phase, before in zip(last.values(), known, strict=True) if before is not phase)
    for fact in applied if facts.PartitionsFound in kinds else ():
        if isinstance(fact, facts.PartitionsFound):
            counts.update(_found_counts(fact))
    moved = [fact for fact in applied if isinstance(fact, facts.ReplicasMoved)]
    if replicas := sum(sum(map(len, fact.brokers)) for fact in moved):
        counts["replicas"] += replicas
    return counts


def _found_counts(found: facts.PartitionsFound) -> Counter[str]:
    counts: Counter[str] = Counter()
    # Equal rows are one object, with few exceptions.
    ids = list(map(id, found.rows))
    rows = dict(zip(ids, found.rows, strict=True))
    for key, n in Counter(ids).items():
        phase, replicas = rows[key]
        counts["replicas"] += n * len(replicas)
        if phase is not None:
            counts[_PHASES[phase]] += n
    counts["leaders"] = counts["isrs"] = len(found.leaderships) - found.leaderships.count(None)
    return counts


def _leadership_counts(context: ControllerContext, applied: Iterable[Fact]) -> dict[str, int]:
    leaders = isrs = 0
    for tp, leadership in leaderships_in(applied):
        before = context.leadership.get(tp)
        leaders += before is None or before.leader != leadership.leader
        isrs += before is None or before.isr != leadership.isr
    return {name: n for name, n in (("leaders", leaders), ("isrs", isrs)) if n}


def _last_phases(applied: Iterable[Fact]) -> dict[TopicPartition, PartitionPhase]:
    last: dict[TopicPartition, PartitionPhase] = {}
    for fact in applied:
        if isinstance(fact, facts.PartitionsMoved):
            last.update(dict.fromkeys(fact.tps, fact.phase))
    return last
