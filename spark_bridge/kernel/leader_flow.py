"""Leaders of a block's partitions as a flow between brokers, along paths that change the fewest leaders."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from spark_bridge.kernel.leader_view import Integers, LeaderView, count_alike

FAR = np.iinfo(np.int64).max // 4

_SCATTER = np.uint32(0x9E3779B1)
"""A multiplier that, modulo 2**32, moves neighbouring numbers far apart (Knuth)."""

_MANY_STEPS = 8
"""Paths with this many arcs are rare; if there are any, it is worth reducing the arcs to the cheapest ones."""


class LeaderFlow:
    """The leaders of a block's partitions while they are chosen.

    Each replica that may lead is a slot. A slot whose partition is led elsewhere is an arc from that leader to the
    slot's broker. An arc away from the first leader costs one change, one between two other brokers costs none, and one
    back to the first leader gains one. Leaders are passed on only along the cheapest paths, so at any time no other
    choice with the same number of leaders on each broker has fewer changes (successive shortest paths). Path lengths
    fit 64 bits for up to 30,000 brokers.
    """

    def __init__(self, replicas: NDArray[np.int32], may: NDArray[np.bool_], tie: NDArray[np.uint32]) -> None:
        """Start with the first replicas as leaders; `may` (P, R) marks the replicas that may lead."""
        self.first = replicas[:, 0].astype(np.int64)
        self.leader = self.first.copy()
        partition, place = np.nonzero(may)
        target = replicas[partition, place].astype(np.int64)
        order = np.argsort(target, kind="stable")
        self._partition, self._target = partition[order], target[order]
        # The order of equal arcs; scattered so that it favours neither certain brokers nor certain partitions.
        self._tie = (tie[self._partition] ^ self._target.astype(np.uint32) * _SCATTER) * _SCATTER
        self._changed = self._target != self.first[self._partition]

    def settle(self, view: LeaderView, top: Integers, grain: float | None) -> None:
        """Pass leaders on until no path makes the plan cheaper, or equally cheap with fewer changes."""
        while self._phase(view, top, grain):
            pass

    def height(self, view: LeaderView, top: Integers) -> Integers:
        """Return the highest unit that the block fills on each broker, given the one at the start."""
        count = len(top)
        gained = np.bincount(self.leader, minlength=count) - np.bincount(self.first, minlength=count)
        return top + view.copies * gained

    def _phase(self, view: LeaderView, top: Integers, grain: float | None) -> bool:
        """Pass leaders on along all cheapest paths at once; return whether there were any."""
        price = partial(view.price, grain=grain)
        unit = self.height(view, top)
        hop = len(top) + 1  # a change outweighs all hops of a path, and a price all its changes
        worth = hop * 2 * hop
        start = -price(unit) * worth
        take = price(unit + view.copies)
        source = self.leader[self._partition]
        length = (self._changed - (source != self.first[self._partition]).astype(np.int64)) * hop + 1
        distance, tight = self._distances(start, source, length)
        total = np.where(view.may_lead, (distance + take * worth) // hop, FAR)
        best = int(total.min(initial=0))
        if best >= 0:
            return False
        step, most = view.copies, len(self.leader)
        room = np.where(total == best, count_alike(price, unit + step, step, most), 0)
        stock = np.where(distance == start, count_alike(price, unit, -step, most), 0)
        arcs = self._useful(np.flatnonzero(tight), source, room > 0)
        self._hand_on(arcs, source, stock, room)
        return True

    def _distances(self, start: Integers, source: Integers, length: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """Return the length of the cheapest path to each broker, and which arcs are on such paths (Bellman-Ford)."""
        arcs = _Arcs(source, self._target, length)
        distance, steps = start, 0
        while not np.array_equal(nearer := arcs.relaxed(distance), distance):
            distance, steps = nearer, steps + 1
            if steps == _MANY_STEPS:
                arcs = arcs.cheapest()
        return distance, distance[source] + length == distance[self._target]

    def _useful(self, arcs: Integers, source: Integers, sink: NDArray[np.bool_]) -> Integers:
        """Return the arcs from which a sink can be reached, ordered by source, then by tie."""
        useful, count = sink.copy(), -1
        while count != (count := int(np.count_nonzero(useful))):
            useful[source[arcs[useful[self._target[arcs]]]]] = True
        arcs = arcs[useful[self._target[arcs]]]
        return arcs[np.lexsort((self._tie[arcs], source[arcs]))]

    def _hand_on(self, arcs: Integers, source: Integers, stock: Integers, room: Integers) -> None:
        """Find paths over these arcs, which form no cycle, until no source reaches a sink."""
        bounds = np.searchsorted(source[arcs], np.arange(len(stock) + 1)).tolist()
        search = _Search(self._partition[arcs].tolist(), self._target[arcs].tolist(), bounds, room.tolist())
        for broker in np.flatnonzero((stock > 0) & (np.diff(bounds) > 0)).tolist():
            for _ in range(int(stock[broker])):
                if not search.path_from(broker):
                    break
        for partition, broker in search.leader.items():
            self.leader[partition] = broker


class _Arcs:
    """Arcs in the order of their targets."""

    def __init__(self, source: Integers, target: Integers, length: Integers) -> None:
        self._source, self._target, self._length = source, target, length
        self._heads = np.flatnonzero(np.diff(target, prepend=-1))
        self._receivers = target[self._heads]

    def relaxed(self, distance: Integers) -> Integers:
        """Return the distances if each path may be one arc longer."""
        nearer = distance.copy()
        if len(self._heads):
            reached = np.minimum.reduceat(distance[self._source] + self._length, self._heads)
            nearer[self._receivers] = np.minimum(reached, nearer[self._receivers])
        return nearer

    def cheapest(self) -> _Arcs:
        """Return only the cheapest of the arcs from one broker to another."""
        order = np.lexsort((self._source, self._target))
        source, target = self._source[order], self._target[order]
        heads = np.flatnonzero((np.diff(source, prepend=-1) != 0) | (np.diff(target, prepend=-1) != 0))
        return _Arcs(source[heads], target[heads], np.minimum.reduceat(self._length[order], heads))


class _Search:
    """A depth-first search that visits each arc only once: afterwards it is used up or known to lead nowhere."""

    def __init__(self, partition: list[int], target: list[int], bounds: list[int], room: list[int]) -> None:
        self._partition, self._target = partition, target
        self._next, self._end = bounds[:-1], bounds[1:]
        self._room = room
        self.leader: dict[int, int] = {}  # of partitions passed on

    def path_from(self, source: int) -> bool:
        """Pass one leadership on from the source to a broker with room; return whether there was a path."""
        path: list[int] = []
        broker = source
        while not (path and self._room[broker]):
            arc = self._arc_from(broker)
            if arc is not None:
                path.append(arc)
                broker = self._target[arc]
            elif path:
                path.pop()
                broker = self._target[path[-1]] if path else source
                self._next[broker] += 1
            else:
                return False
        self._room[broker] -= 1
        self.leader.update((self._partition[arc], self._target[arc]) for arc in path)
        return True

    def _arc_from(self, broker: int) -> int | None:
        """Return the broker's next arc whose partition it still leads."""
        arc, end = self._next[broker], self._end[broker]
        while arc < end and self._partition[arc] in self.leader:
            arc += 1
        self._next[broker] = arc
        return arc if arc < end else None
