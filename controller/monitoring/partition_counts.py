"""How many partitions are offline, under-replicated, under min ISR or led by another than their preferred leader.

The counts follow from facts: only partitions that a fact named are looked at again, never all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Flag, auto
from typing import Final

from attrs import define, field

from controller.model import facts
from controller.model.context import UNASSIGNED, ControllerContext
from controller.model.facts import Fact
from controller.model.partition_states import PartitionPhase
from transport.metadata import NO_LEADER, TopicPartition


class Notable(Flag):
    """What is to be told of a partition; nothing if all is well."""

    NOTHING = 0
    OFFLINE = auto()
    """In the state Offline: nobody leads it."""

    UNDER_REPLICATED = auto()
    """The ISR has fewer members than the partition has replicas, but for those that a reassignment adds."""

    UNDER_MIN_ISR = auto()
    """It is led, and refuses acks=all."""

    IMBALANCED = auto()
    """It is led by another than its preferred leader."""


KINDS: Final = (Notable.OFFLINE, Notable.UNDER_REPLICATED, Notable.UNDER_MIN_ISR, Notable.IMBALANCED)
_ABOUT_ONE: Final = (facts.LeadershipWritten, facts.PartitionMoved, facts.PartitionFound)


@define
class PartitionCounts:
    """The notable partitions of one controllership."""

    context: ControllerContext
    notable: dict[TopicPartition, Notable] = field(factory=dict, init=False)
    _counts: dict[Notable, int] = field(factory=lambda: dict.fromkeys(KINDS, 0), init=False)
    _changed: dict[TopicPartition, None] = field(factory=dict, init=False)

    def count(self, kind: Notable) -> int:
        """Return how many partitions are of one of KINDS."""
        return self._counts[kind]

    def note(self, applied: Iterable[Fact]) -> None:
        """Remember which partitions facts are about that the context is going to take."""
        for fact in applied:
            if isinstance(fact, _ABOUT_ONE):
                self._changed[fact.tp] = None
            else:
                self._changed.update(dict.fromkeys(self._named(fact)))

    def refresh(self) -> None:
        """Look again at the partitions that were noted, as the context has them now."""
        changed, self._changed = self._changed, {}
        for tp in changed:
            now, before = judge(self.context, tp), self.notable.get(tp, Notable.NOTHING)
            if now == before:
                continue
            for kind in KINDS:
                self._counts[kind] += (kind in now) - (kind in before)
            if now:
                self.notable[tp] = now
            else:
                self.notable.pop(tp, None)

    def _named(self, fact: Fact) -> Iterator[TopicPartition]:
        match fact:
            case facts.TopicWritten(name=name, znode=znode):
                known = self.context.topics.get(name)
                before = {} if known is None else known.znode.partitions
                for number in {**before, **znode.partitions}:
                    if before.get(number, UNASSIGNED) != znode.partitions.get(number, UNASSIGNED):
                        yield TopicPartition(name, number)
            case facts.TopicGone(name=name) | facts.DeletionStarted(topic=name) | facts.MinIsrRead(topic=name):
                known = self.context.topics.get(name)
                if known is not None:
                    yield from (TopicPartition(name, number) for number in known.znode.partitions)
            case _:
                return


def judge(context: ControllerContext, tp: TopicPartition) -> Notable:
    """Return what is notable of a partition; of one that is being deleted, nothing."""
    if tp.topic in context.deletions:
        return Notable.NOTHING
    found = Notable.NOTHING
    if context.partition_phases.get(tp) is PartitionPhase.OFFLINE:
        found |= Notable.OFFLINE
    state = context.leadership.get(tp)
    assignment = context.assignment(tp)
    if state is None or not assignment.replicas:
        return found
    if len(state.isr) < len(assignment.replicas) - len(assignment.adding_replicas):
        found |= Notable.UNDER_REPLICATED
    if state.leader != NO_LEADER and len(state.isr) < context.min_isr(tp.topic):
        found |= Notable.UNDER_MIN_ISR
    if state.leader != assignment.replicas[0]:
        found |= Notable.IMBALANCED
    return found
