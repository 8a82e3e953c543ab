"""Loose replicas: those for which the rules force a move, but leave open where to or which replica.

A new replica may go to any broker that receives. A replica that stays may go to a broker that drops another replica of
its partition, because the list shrinks or a rack has too many. Whatever is chosen, the same number of replicas of the
same partitions moves.

If a goal also evens out, replicas may move from givers to takers as well, on request (see `with_evening`).
"""

from __future__ import annotations

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.racks import surplus
from spark_bridge.kernel.terms import Terms
from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.goal import MOST_REPLICAS
from spark_bridge.model.lists import any_of, counts, shared


@frozen(eq=False)
class Loose:
    """The loose replicas of a block; P partitions, W places in each list, R replicas before.

    Attributes:
        after: (P, W) the lists, which may change.
        homes: (P, R) the brokers that had the partition, NOBODY in place of those that must lose it.
        limit: (P) how many replicas of the partition a rack may hold for a replica to move there.
        tighter: (P) whether a move within a rack also has to keep to the limit (see `Terms.is_tighter`).
        rack: (B) rack numbers, negative without a rack.
        receives: (B) the brokers that may get new replicas.
        keeps: (B) the brokers that lose nothing and get nothing back (see `Terms.keeps`).
        gives: (B) the brokers that may lose replicas that need not move; none if only forced moves are made.
        takes: (B) the brokers that may get these.
        forced: (P) how many replicas of a partition may be new on brokers that do not take.
    """

    after: NDArray[np.int32]
    homes: NDArray[np.int32]
    limit: NDArray[np.int32]
    tighter: NDArray[np.bool_]
    rack: NDArray[np.int32]
    receives: NDArray[np.bool_]
    keeps: NDArray[np.bool_]
    gives: NDArray[np.bool_]
    takes: NDArray[np.bool_]
    forced: NDArray[np.int64]

    @classmethod
    def of(cls, block: Block, after: NDArray[np.int32], terms: Terms) -> Loose:
        """Return the loose replicas of a block's lists."""
        homes = np.where((block.before != NOBODY) & ~terms.leaves[block.before], block.before, NOBODY)
        limit = terms.rack_limits(block)
        tighter = terms.is_tighter(block, limit)
        nobody, width = np.zeros_like(terms.receives), np.full(len(block), after.shape[1])
        rights = terms.receives, terms.keeps, nobody, nobody
        return cls(after, homes.astype(np.int32), limit, tighter, terms.rack, *rights, width)

    def with_evening(self, block: Block, terms: Terms) -> Loose:
        """Return the loose replicas including those that evening out may move."""
        kept = self.homes != NOBODY
        if terms.repairs:
            limit = terms.limits[np.minimum(terms.factors(block), MOST_REPLICAS)]
            kept &= ~surplus(self.homes, terms.rack, limit, np.zeros(len(terms.rack)), terms.keeps)
        forced = np.maximum(terms.factors(block) - counts(kept), 0)
        return evolve(self, gives=terms.gives, takes=terms.takes, forced=forced)

    def at(self, rows: NDArray[np.intp], columns: NDArray[np.intp], *, first: bool) -> NDArray[np.bool_]:
        """Return which replicas at some places are loose.

        Unless `first` is given, the replica of a preferred leader is not exchanged for a dropped one.
        """
        holders = self.after[rows, columns]
        swappable = any_of(self._dropped(rows) != NOBODY) & ~(self.keeps[holders] & (holders != NOBODY))
        if not first:
            swappable &= self.homes[rows, 0] != holders
        return np.asarray(swappable | self._is_new(rows, columns) | self.gives[holders])

    def targets(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return (B) the brokers to which at least one of some loose replicas may go."""
        found = self.receives & self._is_new(rows, columns).any()
        found |= self.takes & self.gives[self.after[rows, columns]].any()
        homes = self._dropped(rows)
        found[homes[homes != NOBODY]] = True
        return found

    def may(self, rows: NDArray[np.intp], columns: NDArray[np.intp], targets: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return (n, k) whether loose replicas may go to each of some brokers, regardless of their loads."""
        holders, sources = self.after[rows], self.after[rows, columns]
        there = (holders[:, :, None] == targets).any(axis=1)
        racks = np.where(holders == NOBODY, NOBODY, self.rack[holders])
        same = (racks[:, :, None] == self.rack[targets]).sum(axis=1)
        within = (self.rack[sources][:, None] == self.rack[targets]) & (sources != NOBODY)[:, None]
        spread = (self.rack[targets] < 0) | (same - within < self.limit[rows][:, None])
        spread |= within & ~self.tighter[rows][:, None]
        new = self._is_new(rows, columns)
        evened = (new | self.gives[sources])[:, None] & self.takes[targets]
        new = (new & (self._others(rows, columns) < self.forced[rows]))[:, None] & self.receives[targets]
        return np.asarray(~there & spread & (new | evened | self._may_home(rows, columns, targets)))

    def is_home(self, rows: NDArray[np.intp], brokers: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return (n, k) whether brokers had partitions and may keep them."""
        return np.asarray((self.homes[rows][:, :, None] == brokers).any(axis=1))

    def _may_home(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp], targets: NDArray[np.intp]
    ) -> NDArray[np.bool_]:
        """Return (n, k) whether replicas may return to brokers that had the partition.

        If evening out makes way, a replica that stays may do so only from a broker that gives.
        """
        sources = self.after[rows, columns]
        new = self._is_new(rows, columns)
        able = new | self.gives[sources] | (~self.takes.any() & ~self.keeps[sources])
        return self.is_home(rows, targets) & able[:, None] & ~self.keeps[targets]

    def _others(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return how many other replicas of each partition are new on brokers that do not take."""
        holders = self.after[rows]
        new = (holders != NOBODY) & ~self.takes[holders] & ~shared(holders, self.homes[rows])
        new[np.arange(len(rows)), columns] = False
        return counts(new)

    def _is_new(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which replicas at some places are new: without a broker yet, or on one that is not their home."""
        holder = self.after[rows, columns]
        return np.asarray((holder == NOBODY) | ~any_of(self.homes[rows] == holder[:, None]))

    def _dropped(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return (n, R) the homes of some rows to which a replica may return, NOBODY in place of the others."""
        homes = self.homes[rows]
        away = shared(homes, self.after[rows]) | self.keeps[homes]
        return np.where(away, NOBODY, homes).astype(np.int32)
