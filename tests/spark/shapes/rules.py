"""The hard rules of docs/planning.md once more, over lists and sets, without code of the planner or its checker."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from attrs import field, frozen

from spark_bridge.model.brokers import BrokerState
from spark_bridge.model.goal import Goal, GoalKind, LeaderScope
from tests.spark.kernel.instances import Instance

Lists = Sequence[Sequence[int]]
"""The replicas of every partition as broker indices, preferred leader first, in the order of an instance."""

FORCED_ONLY: Final = frozenset({"remove-brokers", "set-replication-factor", "repair-racks"})
STILL: Final = frozenset({"relieve", "leaders"})
"""Kinds that move nothing because of racks, nor off brokers that are dead or drain."""


@frozen
class Rules:
    """The rights of brokers under a goal.

    Attributes:
        goal: The goal.
        racks: Every broker's rack; None where it has none, or racks do not count.
        named: Brokers that the goal names.
        drained: Brokers whose replicas all have to leave.
        receivers: Brokers that may get replicas.
        keepers: Brokers that get none, and from which none has to leave.
        down: Brokers that do not serve.
        fixed: Those of them that lose nothing.
        limits: What `limit` found so far; it looks at every receiver.
    """

    goal: Goal
    racks: tuple[str | None, ...]
    named: frozenset[int]
    drained: frozenset[int]
    receivers: frozenset[int]
    keepers: frozenset[int]
    down: frozenset[int]
    fixed: frozenset[int]
    limits: dict[int, int] = field(factory=dict, init=False, eq=False, repr=False)

    @classmethod
    def of(cls, given: Instance) -> Rules:
        """Put into sets what the brokers' states and the goal say."""
        goal, rows = given.goal, given.brokers.rows
        named = frozenset(n for n, b in enumerate(rows) if b.id in goal.brokers)
        removed = named if goal.kind is GoalKind.REMOVE_BROKERS else frozenset[int]()
        down = frozenset(n for n, b in enumerate(rows) if b.state is BrokerState.DEAD or b.is_down)
        ill = {n for n, b in enumerate(rows) if b.state is BrokerState.DRAINING}
        if goal.dead_is_gone:
            ill |= down
        live = {n for n, b in enumerate(rows) if b.state is BrokerState.LIVE and b.id not in goal.exclude}
        drained = frozenset() if str(goal.kind) in STILL else removed | ill
        receivers = frozenset(live - removed)
        # What relieved brokers have may leave.
        relieved = named if goal.kind is GoalKind.RELIEVE else frozenset()
        fixed = down - drained - (relieved if goal.dead_is_gone else frozenset())
        leaving = drained | (named if str(goal.kind) in STILL else frozenset()) - fixed
        return cls(
            goal,
            tuple(b.rack if goal.racks else None for b in rows),
            named,
            drained,
            receivers,
            frozenset(range(len(rows))) - receivers - leaving,
            down,
            fixed,
        )

    def is_stranded(self, before: Sequence[int]) -> bool:
        """Return whether no replica of a partition can be read, so that nothing of it may change."""
        return self.down.issuperset(before)

    def fixed_of(self, before: Sequence[int], wanted: int) -> frozenset[int]:
        """Return the brokers that keep a partition because they do not serve; those of shorter lists need not."""
        return self.fixed.intersection(before) if wanted >= len(before) else frozenset()

    def wanted(self, topic: str, before: Sequence[int]) -> int:
        """Return how many replicas a partition shall have."""
        if self.goal.replication_factor is None or not self.is_meant(topic):
            return len(before)
        return self.goal.replication_factor

    def is_meant(self, topic: str) -> bool:
        """Return whether the goal is for a topic."""
        return not self.goal.topics or any(pattern.fullmatch(topic) for pattern in _patterns(self.goal.topics))

    def limit(self, wanted: int) -> int:
        """Return how many replicas of a partition a rack may hold: the fewest with which all find a receiver."""
        if wanted not in self.limits:
            self.limits[wanted] = self._limit(self.receivers, wanted)
        return self.limits[wanted]

    def limit_beside(self, before: Sequence[int], wanted: int) -> int:
        """Return how many replicas of a partition a rack has to hold, where what brokers keep counts as well."""
        kept = self.keepers.intersection(before)
        return self._limit(self.receivers | kept, wanted) if kept else self.limit(wanted)

    def cap(self, before: Sequence[int], wanted: int, rack: str) -> int:
        """Return how many replicas of a partition a rack may hold if only what must moves, beside what brokers keep."""
        kept = sum(self.racks[b] == rack for b in before if b not in self.drained)
        stays = kept if str(self.goal.kind) in STILL else min(kept, self.limit(wanted))
        return max(self.limit_beside(before, wanted), stays)

    def crams(self, before: Sequence[int], after: Sequence[int]) -> bool:
        """Return whether a replica is new in a rack that has more than it has to, where what brokers keep counts.

        A list that shrinks loses first what is more than its racks have to hold.
        """
        limit, there = self.limit_beside(before, len(after)), self._in_racks(after)
        if limit == self.limit(len(after)):
            return False
        if any(there[rack] > limit for b in set(after) - set(before) if (rack := self.racks[b]) is not None):
            return True
        # A list that shrinks loses first what cannot be read, then what is more than its racks have to hold.
        kept = [b for b in before if b not in self.drained]
        if len(kept) > len(after) and self.fixed.intersection(kept):
            return False
        has, had = (sum(max(0, n - limit) for n in self._in_racks(some).values()) for some in (after, kept))
        return has > max(0, had - max(0, len(kept) - len(after)))

    def _in_racks(self, brokers: Sequence[int]) -> Counter[str]:
        return Counter(rack for b in brokers if (rack := self.racks[b]) is not None)

    def _limit(self, places: frozenset[int], wanted: int) -> int:
        alone = sum(self.racks[b] is None for b in places)
        in_racks = Counter(self.racks[b] for b in places if self.racks[b] is not None)
        for limit in range(1, wanted + 1):
            if alone + sum(min(count, limit) for count in in_racks.values()) >= wanted:
                return limit
        return wanted

    def crowd(self, brokers: Sequence[int] | frozenset[int], wanted: int) -> int:
        """Return how many replicas are more than their racks may hold."""
        in_racks, limit = self._in_racks([*brokers]), self.limit(wanted)
        # What does not serve stays, even if it is too many.
        loose = self._in_racks([b for b in brokers if b not in self.fixed])
        return sum(min(loose[rack], max(0, count - limit)) for rack, count in in_racks.items())

    def forced(self, before: Sequence[int], wanted: int) -> int:
        """Return how many replicas have to be new."""
        kept = [b for b in before if b not in self.drained]
        dropped = min(len(self.fixed.intersection(kept)), max(0, len(kept) - wanted))
        return max(0, wanted - (len(kept) - dropped - self.crowd(kept, wanted)))


@cache
def _patterns(topics: tuple[str, ...]) -> list[re.Pattern[str]]:
    """Return what the names of a goal's topics match; re itself keeps only a few hundred of them compiled."""
    return [re.compile(".*".join(map(re.escape, name.split("*")))) for name in topics]


def broken_rules(given: Instance, lists: Lists, *, beside: bool = False, spares: bool = False) -> list[str]:
    """Return what a plan breaks, a line each that begins with the rule's name.

    Args:
        given: The instance.
        lists: The plan.
        beside: Whether racks count what brokers keep that get nothing.
        spares: Whether partitions may stay as little spread as they were.
    """
    rules = Rules.of(given)
    found: list[str] = []
    for (topic, number), before, after in zip(given.names, given.replicas, lists, strict=True):
        broken = [*_of_partition(rules, topic, before, after)]
        if spares and rules.crowd(after, len(after)) <= rules.crowd(before, len(after)):
            broken = [rule for rule in broken if rule != "too many in a rack"]
        if beside and rules.crams(before, after):
            broken.append("too many in a rack beside what brokers keep")
        found += [f"{rule}: {topic}-{number} {tuple(before)} -> {tuple(after)}" for rule in broken]
    return [*found, *_of_disks(given, lists)]


def _of_partition(rules: Rules, topic: str, before: Sequence[int], after: Sequence[int]) -> Iterator[str]:
    wanted, new, gone = rules.wanted(topic, before), set(after) - set(before), set(before) - set(after)
    if rules.is_stranded(before):
        if tuple(before) != tuple(after):
            yield "changes what no broker serves"
        return
    if len(gone & rules.fixed) > max(0, len(set(before) - rules.drained) - wanted):
        yield "replica taken from a broker that does not serve"
    if len(after) != wanted:
        yield "replication factor"
    if len(set(after)) < len(after):
        yield "broker twice"
    if not new <= rules.receivers:
        yield "new replica where none may go"
    if rules.drained & set(after):
        yield "replica left on a drained broker"
    yield from _of_racks(rules, before, after)
    yield from _of_goal(rules, new, gone, rules.forced(before, wanted))
    yield from _of_leader(rules, before, after)
    if not rules.is_meant(topic) and rules.goal.kind is GoalKind.LEADERS and tuple(before) != tuple(after):
        yield "another leader of a topic that is not meant"


def _of_racks(rules: Rules, before: Sequence[int], after: Sequence[int]) -> Iterator[str]:
    crowd = rules.crowd(after, len(after))
    if crowd and str(rules.goal.kind) not in STILL:
        yield "too many in a rack"
    if crowd > rules.crowd(before, len(before)) and str(rules.goal.kind) in STILL:
        yield "more in a rack than before"


def _of_goal(rules: Rules, new: set[int], gone: set[int], forced: int) -> Iterator[str]:
    match str(rules.goal.kind):
        case "remove-brokers" | "set-replication-factor" | "repair-racks" if len(new) > forced:
            yield "moves what need not move"
        case "add-brokers" if len(new - rules.named) > forced:
            yield "gives to who is not added"
        case "relieve" if not gone <= rules.named or new & rules.named:
            yield "moves off who is not relieved"
        case "leaders" if new or gone:
            yield "moves data"
        case _:
            pass


def _of_leader(rules: Rules, before: Sequence[int], after: Sequence[int]) -> Iterator[str]:
    scope = rules.goal.leader_scope
    if set(before) == set(after) and before[0] == after[0] and tuple(before) != tuple(after):
        yield "another order without another leader"
    if scope is LeaderScope.NONE and before[0] in after and before[0] != after[0]:
        yield "another leader, and none may change"
    if scope is LeaderScope.TOUCHED and set(before) == set(after) and tuple(before) != tuple(after):
        yield "another leader of what is not touched"


def _of_disks(given: Instance, lists: Lists) -> Iterator[str]:
    has, gets = Counter[int](), Counter[int]()
    for size, before, after in zip(given.size, given.replicas, lists, strict=True):
        has.update(dict.fromkeys(after, size))
        gets.update(dict.fromkeys(set(after) - set(before), size))
    for n, broker in enumerate(given.brokers.rows):
        if broker.disk is not None and gets[n] and has[n] > broker.disk:
            yield f"disk: broker {broker.id} gets {gets[n]} and has {has[n]} then, of {broker.disk}"


def moved(given: Instance, lists: Lists) -> int:
    """Return what a plan moves: bytes, or replicas where nobody has a byte."""
    price = given.size if any(given.size) else [1] * len(given.size)
    return sum(
        cost * len(set(after) - set(before)) for cost, before, after in zip(price, given.replicas, lists, strict=True)
    )
