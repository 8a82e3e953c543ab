"""Dealing replicas to brokers as evenly as the rules permit.

Replicas that the same brokers may receive are one demand, so that the work grows with the number of different demands
and of brokers, not with the number of partitions.

The deal is exact: no other has a lower sum of squared loads, nor a lower greatest load. First every demand fills the
emptiest brokers; then units shift along chains (broker a gives a unit of one demand to b, which gives a unit of another
to c ...) as long as a chain leads to a broker with at least two less. That none is left means optimal: the
cost-reducing-path theorem of Harvey, Ladner, Lovász and Tamir, "Semi-matchings for bipartite graphs and load balancing"
(2003), here with demands of more than one unit.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence

from attrs import Factory, define, frozen


@frozen
class Demand:
    """A number of replicas, the brokers that may take none of them, and the most that each other broker may take."""

    count: int
    barred: frozenset[int] = frozenset()
    limits: Mapping[int, int] | None = None
    """The most by broker, nothing for brokers not in it; None sets no limit."""

    def limit(self, broker: int) -> int:
        """Return how many of the replicas this broker may take."""
        if broker in self.barred:
            return 0
        return self.count if self.limits is None else self.limits.get(broker, 0)


def deal(
    demands: Sequence[Demand],
    load: Mapping[int, int],
    brokers: Sequence[int],
    room: Mapping[int, int] | None = None,
) -> list[Counter[int]]:
    """Deal all demands over the brokers so that the loads end as even as possible.

    Args:
        demands: What to deal. Each must fit into the limits of its brokers.
        load: What every broker has already.
        brokers: The brokers; of two with equal load the earlier takes a replica first.
        room: How many replicas each broker should take at most, of all demands together. It is a wish that comes before
            evenness: as few as possible are dealt beyond it.

    Returns:
        How many replicas each broker takes, for each demand in their order.
    """
    table = _Table(demands, brokers, Counter({b: load[b] for b in brokers}), room)
    most_bound_first = sorted(range(len(demands)), key=lambda d: (-len(demands[d].barred), d))
    for d in most_bound_first:
        table.fill(d)
    while table.even_out():
        pass
    return [+hand for hand in table.hands]


Level = tuple[int, int]
"""What one more replica costs: how far beyond its room the broker then is, and the load that it then has."""


@define
class _Table:
    """A deal in progress."""

    demands: Sequence[Demand]
    brokers: Sequence[int]
    load: Counter[int]
    room: Mapping[int, int] | None
    taken: Counter[int] = Factory(Counter)
    hands: list[Counter[int]] = Factory(lambda self: [Counter() for _ in self.demands], takes_self=True)
    held: dict[int, set[int]] = Factory(lambda self: {b: set() for b in self.brokers}, takes_self=True)
    """The demands of which each broker has units in its hand."""

    def level(self, broker: int, more: int) -> Level:
        """Return what the last replica costs when the broker has this many more than now."""
        over = 0 if self.room is None else max(0, self.taken[broker] + more - self.room[broker])
        return over, self.load[broker] + more

    def fill(self, d: int) -> None:
        """Give each unit of a demand to the broker where it costs least."""
        demand, hand = self.demands[d], self.hands[d]
        heap = [(self.level(b, 1), order, b) for order, b in enumerate(self.brokers) if demand.limit(b)]
        heapq.heapify(heap)
        for _ in range(demand.count):
            _, order, broker = heap[0]
            self.give(d, broker, 1)
            if hand[broker] < demand.limit(broker):
                heapq.heapreplace(heap, (self.level(broker, 1), order, broker))
            else:
                heapq.heappop(heap)

    def even_out(self) -> bool:
        """Shift units from fuller to emptier brokers, once round; return whether there was anything to shift."""
        shifted = False
        settled: set[int] = set()
        for giver in sorted(self.brokers, key=lambda b: (self.level(b, 0), b), reverse=True):
            while giver not in settled and self.level(giver, 0) > min(self.level(b, 1) for b in self.brokers):
                chain, reached = self.chain(giver)
                if not chain:
                    # Who is reached from here reaches nobody else: the no fuller ones among them need no search.
                    settled |= {b for b in reached if self.level(b, 0) <= self.level(giver, 0)}
                for d, start, end in chain:
                    self.give(d, start, -1)
                    self.give(d, end, 1)
                    shifted = True
        return shifted

    def chain(self, start: int) -> tuple[list[tuple[int, int, int]], set[int]]:
        """Search breadth first for a broker where a unit costs less; return the shifts to it, and who was reached."""
        came: dict[int, tuple[int, int]] = {}
        unseen, tried, queue = set(self.brokers) - {start}, set[int](), deque([start])
        while queue and unseen:
            giver = queue.popleft()
            for d in sorted(self.held[giver] - tried):
                tried.add(d)
                for taker in self.takers(d, unseen):
                    unseen.remove(taker)
                    came[taker] = (d, giver)
                    if self.level(taker, 1) < self.level(start, 0):
                        return list(_back(came, taker)), set()
                    queue.append(taker)
        return [], {start, *came}

    def takers(self, d: int, brokers: set[int]) -> list[int]:
        """Return which of the brokers can take one more unit of a demand, in order."""
        demand, hand = self.demands[d], self.hands[d]
        return sorted(b for b in brokers if hand[b] < demand.limit(b))

    def give(self, d: int, broker: int, units: int) -> None:
        self.hands[d][broker] += units
        self.load[broker] += units
        self.taken[broker] += units
        if self.hands[d][broker]:
            self.held[broker].add(d)
        else:
            self.held[broker].discard(d)


def _back(came: Mapping[int, tuple[int, int]], taker: int) -> Iterator[tuple[int, int, int]]:
    while taker in came:
        d, giver = came[taker]
        yield d, giver, taker
        taker = giver
