"""The latest decisions: for each event that changed something, its cause, counts of changes, and some examples.

The memory is bounded. Nothing is formatted before somebody looks, so that recording an event costs a few microseconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from attrs import define, field, frozen

from controller.model import facts
from controller.model.context import ControllerContext
from controller.model.facts import Fact
from controller.model.known_topics import UNASSIGNED
from controller.observation.instruments import Application
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition

MAX_DECISIONS: Final = 50
MAX_EXAMPLES: Final = 5

_TOPICS: Final = frozenset({facts.DeletionStarted, facts.TopicGone})
_TELLING: Final = _TOPICS | {facts.LeadershipsWritten, facts.TopicWritten}
"""The facts that examples are taken from."""


@frozen
class Led:
    """A partition whose leadership was written."""

    tp: TopicPartition
    round: str
    before: LeaderAndIsr | None
    after: LeaderAndIsr


@frozen
class Assigned:
    """A partition whose assignment was written."""

    tp: TopicPartition
    round: str
    before: ReplicaAssignment
    after: ReplicaAssignment


@frozen
class OfTopic:
    """A topic that is new, being deleted, or gone; `partitions` is the number of those of a new one."""

    topic: str
    fact: type[Fact]
    partitions: int = 0


Example = Led | Assigned | OfTopic


@frozen
class Decision:
    """The changes of an event, or of several of the same kind that followed one another."""

    event_id: str
    event: str
    time_ms: int
    seconds: float
    caused_by: str | None = None
    """The id of the event that called for this one."""

    brokers: Mapping[str, Sequence[int]] = field(factory=dict)
    """The brokers that came or went."""

    changes: Mapping[str, int] = field(factory=dict)
    examples: tuple[Example, ...] = ()
    count: int = 1
    """The number of events."""

    def and_then(self, later: Decision) -> Decision:
        """Return both as one."""
        changes = dict(self.changes)
        for name, number in later.changes.items():
            changes[name] = changes.get(name, 0) + number
        examples = (*later.examples, *self.examples)[:MAX_EXAMPLES]
        seconds, events = self.seconds + later.seconds, self.count + later.count
        last = later.event_id, later.event, later.time_ms
        return Decision(*last, seconds, later.caused_by, later.brokers, changes, examples, events)


@define
class Decisions:
    """The latest decisions, the newest last."""

    now_ms: Callable[[], int]
    recorded: int = field(default=0, init=False)
    """The number of decisions so far, those included that are no longer kept."""

    _latest: deque[Decision] = field(factory=lambda: deque(maxlen=MAX_DECISIONS), init=False)

    def add(self, decision: Decision) -> None:
        """Keep a decision. Alike ones in a row are kept as one: shrinking ISRs would soon push out all others."""
        self.recorded += 1
        if self._latest and _are_alike(self._latest[-1], decision):
            self._latest[-1] = self._latest[-1].and_then(decision)
        else:
            self._latest.append(decision)

    def latest(self) -> tuple[Decision, ...]:
        """Return the decisions, the newest first."""
        return tuple(reversed(self._latest))


def _are_alike(before: Decision, after: Decision) -> bool:
    """Return whether two decisions are told as one: those that name brokers or a cause are not."""
    apart = before.brokers or after.brokers or before.caused_by or after.caused_by
    return before.event == after.event and not apart


def examples_of(context: ControllerContext, application: Application, applied: Iterable[Fact]) -> Iterator[Example]:
    """Yield what facts change that have not been applied to the context yet, as far as it is told of one subject.

    The facts of leaderships come first in a round, so the first few are found without looking at all.
    """
    for fact in applied:
        if type(fact) not in _TELLING:
            continue
        match fact:
            case facts.LeadershipsWritten():
                for tp, after in islice(zip(fact.tps, fact.leaderships, strict=True), MAX_EXAMPLES):
                    yield Led(tp, application.round, context.leadership.get(tp), after)
            case facts.TopicWritten():
                yield from _topic_written(context, application, fact)
            case facts.DeletionStarted(topic=name) | facts.TopicGone(name=name):
                yield OfTopic(name, type(fact))
            case _:
                pass


def _topic_written(
    context: ControllerContext, application: Application, fact: facts.TopicWritten
) -> Iterator[OfTopic | Assigned]:
    """Yield a new topic, or those of the step's partitions whose assignment changed."""
    if fact.name not in context.topics:
        yield OfTopic(fact.name, facts.TopicWritten, len(fact.znode.partitions))
        return
    for tp in application.steps.subjects[:MAX_EXAMPLES]:
        if tp.topic == fact.name:
            before, after = context.assignment(tp), fact.znode.partitions.get(tp.partition, UNASSIGNED)
            if before != after:
                yield Assigned(tp, application.round, before, after)
