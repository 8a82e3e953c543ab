"""Oversized replicas: those heavier, in some measure, than any broker should be.

The broker of an oversized replica is above the bounds around its proportional share, and the others cannot reach
theirs. So these replicas are placed first, once: each stays where it is unless another broker would be less full with
it. If brokers are added, only the cheapest replicas that fill them move. The share of a broker is then at least the
size of the oversized replicas that it keeps, and the others share the rest.

There are fewer of them than brokers, because each is more than a share. So the driver can hold all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from attrs import define, evolve, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.tally import Query, Tally, loads
from spark_bridge.kernel.terms import UNBOUNDED, Fixed, Terms
from spark_bridge.model.block import BYTES, BYTES_IN, MEASURES, NOBODY, Block
from spark_bridge.model.goal import MOST_REPLICAS
from spark_bridge.model.lists import widened

_WEIGHED = (BYTES, BYTES_IN)

_WORTH_IT = 0.98
"""An oversized replica moves only if the fuller of its two brokers is then at most this part as full as before."""

_FILLED = 0.25
"""For added brokers, heavy replicas are ignored if the rest leaves each broker without one this part of its share."""


@frozen(eq=False)
class Oversized:
    """The oversized replicas of a cluster, which belong to G partitions.

    Attributes:
        above: (3) a replica that is heavier than this in any measure is oversized.
        heaviest: (3) the weights of the heaviest other replica.
        place: (G, 2) each partition's block and its row there.
        weights: (G, 3) the weights of one replica.
        limit: (G) up to how many replicas of the partition a rack may hold for another one to move there.
        tighter: (G) whether a move within a rack also has to keep to the limit (see `Terms.is_tighter`).
        holders: (G, MOST_REPLICAS) broker indices, NOBODY after the last.
    """

    above: NDArray[np.int64]
    heaviest: NDArray[np.int64]
    place: NDArray[np.int64]
    weights: NDArray[np.int64]
    limit: NDArray[np.int64]
    tighter: NDArray[np.int64]
    holders: NDArray[np.int64]

    def fixed(self, brokers: int) -> Fixed:
        """Return their weights by broker and by replication factor."""
        fixed, there = evolve(Fixed.nothing(brokers), above=self.above, heaviest=self.heaviest), self.holders != NOBODY
        rows, columns = np.nonzero(there)
        np.add.at(fixed.load, self.holders[rows, columns], self.weights[rows])
        np.add.at(fixed.by_factor, there.sum(axis=1), self.weights)
        return fixed


NONE = Oversized(
    np.full(len(MEASURES), UNBOUNDED),
    np.full(len(MEASURES), UNBOUNDED),
    np.zeros((0, 2), np.int64),
    np.zeros((0, len(MEASURES)), np.int64),
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    np.zeros((0, MOST_REPLICAS), np.int64),
)


Ask = Callable[[Query], Tally]
"""Asks all blocks of a cluster, and returns the sum of their tallies."""


@frozen(eq=False)
class _Heavier:
    """The query for partitions whose replicas are heavier than `least` (3) in any measure."""

    terms: Terms
    least: NDArray[np.int64]

    def __call__(self, number: int, block: Block) -> Tally:
        """Return a row for each, as in `Oversized`, and the weights of the heaviest other replica."""
        heavier = (block.weights > self.least).any(axis=1)
        rows = np.flatnonzero(heavier)
        holders, limits = widened(block.after[rows], MOST_REPLICAS), self.terms.rack_limits(block)
        limit = np.stack([limits, self.terms.is_tighter(block, limits)], axis=1)[rows]
        place = np.stack([np.full(len(rows), number), rows], axis=1)
        return {
            "all_heavier": np.hstack([place, block.weights[rows], limit, holders]).astype(np.int64),
            "max_other": block.weights[~heavier].max(axis=0, initial=0),
        }


def oversized(ask: Ask, terms: Terms, heaviest: NDArray[np.int64]) -> Oversized:
    """Return the oversized replicas of a cluster, given the weights of its heaviest replica (3)."""
    most = np.where(terms.receives[:, None], terms.high, 0).max(axis=0)
    weighed = [m for m in _WEIGHED if heaviest[m] > most[m]]
    if not terms.takes.any() or not weighed:
        return NONE
    above = np.full(len(MEASURES), UNBOUNDED)
    above[weighed] = most[weighed]
    found = _heavier(ask, terms, above)
    above[_leave_enough(terms, found)] = UNBOUNDED
    weighed = [m for m in weighed if above[m] < UNBOUNDED]
    while weighed:
        # Without the replicas found so far, the shares of the other brokers are smaller, so more may be oversized.
        found = _heavier(ask, terms, above // 2)
        for m in weighed:
            above[m] = _above(terms, found, m)
        if (above >= found.above)[weighed].all():
            break
    return _heavier(ask, terms, above)


def _heavier(ask: Ask, terms: Terms, above: NDArray[np.int64]) -> Oversized:
    """Return the replicas heavier than a limit, in order of block and row."""
    tally = ask(_Heavier(terms, above))
    rows = tally["all_heavier"]
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    place, weights, limit, holders = np.split(rows, np.cumsum((2, len(MEASURES), 2)), axis=1)
    return Oversized(above, tally["max_other"], place, weights, limit[:, 0], limit[:, 1], holders)


def _leave_enough(terms: Terms, found: Oversized) -> NDArray[np.bool_]:
    """Return (3) the measures in which heavy replicas leave the other brokers enough, so that they can be ignored.

    If brokers are evened out, enough is their lower bounds. Brokers that are added get their lower bounds from brokers
    that have none, so a part of a share for each is enough. If no broker must be filled, nothing is enough.
    """
    if not (terms.low[terms.takes] > 0).any():
        return np.zeros(len(MEASURES), np.bool_)
    enough = terms.low if terms.sheds.any() else terms.share * _FILLED
    there = ((found.holders != NOBODY) & terms.receives[found.holders]).sum(axis=1)
    heavier = found.weights > found.above
    left = terms.share.sum(axis=0) - (there[:, None] * found.weights * heavier).sum(axis=0)
    without = np.maximum(len(enough) - there @ heavier, 0)
    needed = [np.sort(column)[:count].sum() for column, count in zip(enough.T, without.tolist(), strict=True)]
    return np.asarray(left >= needed)


def _above(terms: Terms, found: Oversized, m: int) -> int:
    """Return the weight above which replicas are oversized in a measure.

    The heaviest replica is compared with the broker that may have the most, the next with the next, and so on, as long
    as each is more than its broker may have if the remaining brokers share the remaining load. This does not depend on
    where replicas are, so planning again finds the same.

    Returns:
        The weight; less than what was searched for if lighter replicas, which are not known, may be oversized too.
    """
    receivers = np.flatnonzero(terms.receives)
    order = receivers[np.argsort(-terms.high[receivers, m], kind="stable")]
    high, share = terms.high[order, m].astype(np.float64), terms.share[order, m]
    there = (found.holders != NOBODY) & terms.receives[found.holders]
    weights = np.sort(np.repeat(found.weights[:, m], there.sum(axis=1)))[::-1]
    left = float(share.sum())
    for k in range(len(order)):
        most = int(high[k] * max(left, 0.0) / float(share[k:].sum()))
        weight = int(weights[k]) if k < len(weights) else int(found.above[m])
        if weight <= most or k == len(order) - 1:
            return max(most, weight) if k == len(order) - 1 else most
        if k >= len(weights):
            return most
        left -= weight
    return int(UNBOUNDED)


@frozen(eq=False)
class Relocate:
    """The step that moves some replicas: (N, 4) block, row, source, target."""

    moves: NDArray[np.int64]
    brokers: int

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Move the replicas of a block; the tally is the loads."""
        after = block.after.copy()
        for row, source, target in self.moves[self.moves[:, 0] == number, 1:].tolist():
            after[row, after[row] == source] = target
        done = block.with_after(after)
        return done, {"load": loads(done, self.brokers)}


def relocate(found: Oversized, terms: Terms, load: NDArray[np.int64]) -> tuple[Oversized, NDArray[np.int64]]:
    """Return the oversized replicas in their best places, and the moves, (N, 4): block, row, source, target."""
    work = _Placing(found, terms, load.copy(), found.fixed(len(load)).load, found.holders.copy())
    work.run()
    moves = [
        (*found.place[row].tolist(), int(found.holders[row, column]), int(work.holders[row, column]))
        for row, column in np.argwhere(found.holders != work.holders).tolist()
    ]
    return evolve(found, holders=work.holders), np.array(moves, np.int64).reshape(-1, 4)


@define(eq=False)
class _Placing:
    """The state of placing oversized replicas; `kept` (B, 3) is their weights on each broker."""

    found: Oversized
    terms: Terms
    load: NDArray[np.int64]
    kept: NDArray[np.int64]
    holders: NDArray[np.int64]

    def run(self) -> None:
        """Fill added brokers; or relieve brokers, the fullest first, while a replica is better elsewhere."""
        if not self.terms.sheds.any():
            while self._fill():
                pass
            return
        while any(self._relieve(broker) for broker in np.argsort(-self.terms.fullness(self._least()), kind="stable")):
            pass

    def _least(self) -> NDArray[np.int64]:
        """Return (B, 3) what each broker keeps: all it has if it does not give, else its oversized replicas."""
        return np.where(self.terms.gives[:, None], self.kept, self.load)

    def _relieve(self, source: int) -> bool:
        """Move the replica that leaves a broker and its target the least full; return whether that was worth it."""
        if not self.terms.gives[source]:
            return False
        least, share = self._least(), self.terms.share
        now = float((least[source] / share[source])[list(_WEIGHED)].max())
        best: tuple[float, int, int, int] | None = None
        for row, column in np.argwhere(self.holders == source).tolist():
            weight = self.found.weights[row]
            left = float(((least[source] - weight) / share[source])[list(_WEIGHED)].max())
            full = ((least + weight) / share)[:, list(_WEIGHED)].max(axis=1)
            full[~self._may(row, source)] = np.inf
            target = int(full.argmin())
            key = (max(left, float(full[target])), row, column, target)
            best = min(best, key) if best else key
        if best is None or best[0] >= now * _WORTH_IT:
            return False
        self._move(*best[1:])
        return True

    def _fill(self) -> bool:
        """Move the cheapest of the replicas that add most to brokers below their bounds; return whether one did."""
        options = [
            option for place in np.argwhere(self.holders != NOBODY).tolist() for option in self._fillings(*place)
        ]
        if options:
            self._move(*min(options)[2:])
        return bool(options)

    def _fillings(self, row: int, column: int) -> Iterator[tuple[float, int, int, int, int]]:
        """Yield, for each useful target, the negated part of a share that a replica adds, its cost, and the move."""
        source, weight, terms = int(self.holders[row, column]), self.found.weights[row], self.terms
        if not terms.gives[source]:
            return
        least = self._least()
        now = float((least[source] / terms.share[source])[list(_WEIGHED)].max())
        full = ((least + weight) / terms.share)[:, list(_WEIGHED)].max(axis=1)
        missing = np.maximum(terms.low - least, 0)
        added = (np.minimum(missing, weight) / terms.share)[:, list(_WEIGHED)].sum(axis=1)
        for target in np.flatnonzero(self._may(row, source) & (full < now * _WORTH_IT) & (added > 0)).tolist():
            yield -float(added[target]), int(weight[terms.price]), row, column, target

    def _move(self, row: int, column: int, target: int) -> None:
        source, weight = int(self.holders[row, column]), self.found.weights[row]
        for total in (self.load, self.kept):
            total[source] -= weight
            total[target] += weight
        self.holders[row, column] = target

    def _may(self, row: int, source: int) -> NDArray[np.bool_]:
        """Return (B) the brokers that may get a replica of a partition from a broker."""
        terms, holders = self.terms, self.holders[row][self.holders[row] != NOBODY]
        able = terms.takes & (self.load[:, BYTES] + self.found.weights[row, BYTES] <= terms.disk)
        able[holders] = False
        racks = terms.rack[holders[holders != source]]
        limit = self.found.limit[row]
        full = [r for r in sorted(set(racks[racks >= 0].tolist())) if (racks == r).sum() >= limit]
        # A move within a rack does not change how many replicas the rack has.
        within = (terms.rack >= 0) & (terms.rack == terms.rack[source]) & (not self.found.tighter[row])
        return np.asarray(able & (~np.isin(terms.rack, full) | within))
