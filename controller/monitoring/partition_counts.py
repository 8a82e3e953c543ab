"""Counts of partitions that are offline, under-replicated, under min ISR or not led by their preferred leader.

The counts are updated from facts: only partitions that a fact names are judged again, never all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final

from attrs import define, field

from controller.model import facts
from controller.model.context import ControllerContext
from controller.model.facts import Fact
from controller.model.known_topics import UNASSIGNED
from controller.model.notable import Notable, judge_all
from transport.metadata import TopicPartition

_NUMBER: Final = attrgetter("_value_")

_ABOUT_MANY: Final = (facts.LeadershipsWritten, facts.PartitionsMoved, facts.PartitionsFound)


@define
class PartitionCounts:
    """The notable partitions of one controllership."""

    context: ControllerContext
    notable: dict[TopicPartition, Notable] = field(factory=dict, init=False)
    _counts: dict[Notable, int] = field(factory=lambda: dict.fromkeys(Notable, 0), init=False)
    _changed: dict[TopicPartition, None] = field(factory=dict, init=False)

    def count(self, kind: Notable) -> int:
        """Return the number of partitions in one of the conditions."""
        return self._counts[kind]

    def having(self, kinds: Notable) -> Iterator[TopicPartition]:
        """Yield the partitions with any of some conditions. Flags are compared as numbers, several times faster."""
        bits, numbers = kinds.value, map(_NUMBER, self.notable.values())
        return (tp for tp, number in zip(self.notable, numbers, strict=True) if number & bits)

    def note(self, applied: Iterable[Fact]) -> None:
        """Remember the partitions named by facts that are about to be applied to the context."""
        for fact in applied:
            if isinstance(fact, _ABOUT_MANY):
                self._changed.update(dict.fromkeys(fact.tps))
            else:
                self._changed.update(dict.fromkeys(self._named(fact)))

    def refresh(self) -> None:
        """Judge the noted partitions again by the current context."""
        changed, self._changed = self._changed, {}
        tps = list(changed)
        shifts: Counter[tuple[Notable, Notable]] = Counter()
        for tp, now in zip(tps, judge_all(self.context, tps), strict=True):
            before = self.notable.get(tp, Notable.NOTHING)
            if now == before:
                continue
            shifts[before, now] += 1
            if now:
                self.notable[tp] = now
            else:
                self.notable.pop(tp, None)
        for (before, now), number in shifts.items():
            for kind in Notable:
                self._counts[kind] += number * ((kind in now) - (kind in before))

    def _named(self, fact: Fact) -> Iterator[TopicPartition]:
        match fact:
            case facts.TopicWritten(name=name, znode=znode) if name in self.context.topics:
                before = self.context.topics[name].znode.partitions
                for number in {**before, **znode.partitions}:
                    if before.get(number, UNASSIGNED) != znode.partitions.get(number, UNASSIGNED):
                        yield TopicPartition(name, number)
            case facts.TopicGone(name=name) | facts.DeletionStarted(topic=name) | facts.MinIsrRead(topic=name):
                known = self.context.topics.get(name)
                if known is not None:
                    yield from (TopicPartition(name, number) for number in known.znode.partitions)
            case _:
                return
