"""Brokers that a plan leaves fuller than the fullest was, and than tolerance and whole replicas permit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from attrs import frozen

from spark_bridge.model.goal import GoalKind
from tests.spark.kernel.instances import Instance
from tests.spark.shapes.rules import Lists, Rules

_ROUNDING = 1e-9
"""By which part floats may be wrong."""


def fuller(given: Instance, lists: Lists) -> Iterator[tuple[str, str]]:
    """Yield measures in which some broker is too full, and the first of these brokers in words.

    Racks may oblige a broker to hold more than its share by capacity; what is right then is not told so simply.
    """
    rules = Rules.of(given)
    if any(rules.racks[b] is not None for b in rules.receivers):
        return
    for name, weights in (("replicas", [1] * len(given.size)), ("bytes", given.size), ("bytes in", given.bytes_in)):
        loads = _Loads.of(given, rules, lists, weights)
        # One that is larger than any share sets apart the broker that has it, and others are evened around it.
        if max(weights) > loads.mean * max(loads.capacity):
            continue
        for b in loads.too_full():
            id_ = given.brokers.rows[b].id
            yield name, f"broker {id_}: {loads.before[b]} -> {loads.after[b]}, mean {loads.mean:.1f}"
            break


@frozen
class _Loads:
    """One measure of a plan.

    Attributes:
        capacity: Every broker's.
        receivers: Who may get a replica.
        takers: Who may get one for the sake of evenness: relieved brokers get none.
        tolerance: Of the goal.
        pieces: The weight and the holders of every partition after the plan.
        before: What every broker had.
        after: What every broker has.
    """

    capacity: tuple[float, ...]
    receivers: frozenset[int]
    takers: frozenset[int]
    tolerance: float
    pieces: tuple[tuple[int, frozenset[int]], ...]
    before: Counter[int]
    after: Counter[int]

    @classmethod
    def of(cls, given: Instance, rules: Rules, lists: Lists, weights: Sequence[int]) -> _Loads:
        relieved = rules.named if given.goal.kind is GoalKind.RELIEVE else frozenset[int]()
        return cls(
            tuple(b.capacity for b in given.brokers.rows),
            rules.receivers,
            rules.receivers - relieved,
            given.goal.tolerance,
            tuple(zip(weights, map(frozenset, lists), strict=True)),
            _loads(given.replicas, weights),
            _loads(lists, weights),
        )

    @property
    def mean(self) -> float:
        """Return how much there is for a broker of capacity one."""
        return sum(self.after.values()) / sum(self.capacity[b] for b in self.receivers or range(len(self.capacity)))

    def too_full(self) -> list[int]:
        """Return the takers that got more than they should have."""
        most = {b: self._most(b) for b in sorted(self.takers)}
        over = self._over(most)
        got = [b for b in most if self.after[b] > self.before[b]]
        return [b for b in got if self.after[b] > most[b] + over]

    def _over(self, most: Mapping[int, int]) -> int:
        """Return what takers have that is more than all of them should have.

        What relieved brokers give has to go somewhere, so any taker may have that, and of each other's room what is no
        room for a whole replica.
        """
        over = sum(self.after[b] for b in most) - sum(most.values())
        return over + (len(most) - 1) * max(weight for weight, _ in self.pieces) if over > 0 else 0

    def _most(self, broker: int) -> int:
        """Return how much a broker should have at most: its share, or as full as the fullest was, or whole replicas."""
        level, capacity = max(self.mean, self._large_only(broker)), self.capacity[broker]
        fullest = max((self.before[b] / self.capacity[b] for b in self.receivers), default=0.0)
        heaviest = max((weight for weight, holders in self.pieces if broker in holders), default=0)
        within = int(max(fullest, level) * (1 + self.tolerance) * capacity * (1 + _ROUNDING))
        return max(within, ceil(self.mean * capacity), heaviest)

    def _large_only(self, broker: int) -> float:
        """Return how full brokers of this capacity or more are with what is larger than the share of all others."""
        large = {b for b in self.takers if self.capacity[b] >= self.capacity[broker]}
        small = max((self.capacity[b] for b in self.takers - large), default=0.0)
        if not small:
            return 0.0
        heavy = sum(w * len(holders & self.takers) for w, holders in self.pieces if w > self.mean * small)
        return heavy / sum(self.capacity[b] for b in large)


def _loads(lists: Lists, weights: Sequence[int]) -> Counter[int]:
    loads = Counter[int]()
    for row, weight in zip(lists, weights, strict=True):
        loads.update(dict.fromkeys(row, weight))
    return loads
