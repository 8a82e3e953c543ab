"""Loose replicas: those for which the rules force a move and leave the choice where to, or which one.

A new replica may go to any broker that receives. One that stays may go where another of its partition was, if that one
is dropped: from a list that shrinks, or from a rack that has too many. So whatever is chosen, as many replicas move, of
the same partitions.

Where a goal moves more than that, what givers have may go to takers as well, if that is asked (see `with_evening`).
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
        homes: (P, R) the brokers that had the partition, NOBODY for those that have to lose it.
        limit: (P) how many replicas of the partition a rack may hold.
        rack: (B) rack numbers, negative without a rack.
        receives: (B) who may get new replicas.
        gives: (B) who may lose replicas that need not move; nobody where only that moves.
        takes: (B) who may get these.
        forced: (P) how many replicas of a partition may be new on others.
    """

    after: NDArray[np.int32]
    homes: NDArray[np.int32]
    limit: NDArray[np.int32]
    rack: NDArray[np.int32]
    receives: NDArray[np.bool_]
    gives: NDArray[np.bool_]
    takes: NDArray[np.bool_]
    forced: NDArray[np.int64]

    @classmethod
    def of(cls, block: Block, after: NDArray[np.int32], terms: Terms) -> Loose:
        """Look at a block's lists."""
        homes = np.where((block.before != NOBODY) & ~terms.leaves[block.before], block.before, NOBODY)
        limit = terms.limits[np.minimum(terms.factors(block), MOST_REPLICAS)]
        nobody, width = np.zeros_like(terms.receives), np.full(len(block), after.shape[1])
        return cls(after, homes.astype(np.int32), limit, terms.rack, terms.receives, nobody, nobody, width)

    def with_evening(self, block: Block, terms: Terms) -> Loose:
        """Return it with all that moves for the sake of evenness loose as well."""
        kept = self.homes != NOBODY
        if terms.repairs:
            kept &= ~surplus(self.homes, terms.rack, self.limit, np.zeros(len(terms.rack)))
        forced = np.maximum(terms.factors(block) - counts(kept), 0)
        return evolve(self, gives=terms.gives, takes=terms.takes, forced=forced)

    def at(self, rows: NDArray[np.intp], columns: NDArray[np.intp], *, first: bool) -> NDArray[np.bool_]:
        """Return which replicas at some places are loose; the first of a list that stays only where that is asked."""
        swappable = any_of(self._dropped(rows) != NOBODY)
        if not first:
            swappable &= self.homes[rows, 0] != self.after[rows, columns]
        return np.asarray(swappable | self._is_new(rows, columns) | self.gives[self.after[rows, columns]])

    def targets(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return (B) to which brokers any of some loose replicas may go."""
        found = self.receives & self._is_new(rows, columns).any()
        found |= self.takes & self.gives[self.after[rows, columns]].any()
        homes = self._dropped(rows)
        found[homes[homes != NOBODY]] = True
        return found

    def may(self, rows: NDArray[np.intp], columns: NDArray[np.intp], targets: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return (n, k) whether loose replicas may go to each of some brokers, whatever these carry."""
        holders, sources = self.after[rows], self.after[rows, columns]
        there = (holders[:, :, None] == targets).any(axis=1)
        racks = np.where(holders == NOBODY, NOBODY, self.rack[holders])
        same = (racks[:, :, None] == self.rack[targets]).sum(axis=1)
        within = (self.rack[sources][:, None] == self.rack[targets]) & (sources != NOBODY)[:, None]
        spread = within | (self.rack[targets] < 0) | (same < self.limit[rows][:, None])
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
        """Return (n, k) whether brokers had partitions; for evenness only givers lose others for that."""
        able = self._is_new(rows, columns) | self.gives[self.after[rows, columns]] | ~self.takes.any()
        return self.is_home(rows, targets) & able[:, None]

    def _others(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return how many other replicas of partitions are new on brokers that do not take for evenness."""
        holders = self.after[rows]
        new = (holders != NOBODY) & ~self.takes[holders] & ~shared(holders, self.homes[rows])
        new[np.arange(len(rows)), columns] = False
        return counts(new)

    def _is_new(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which replicas at some places are on, or have yet to find, a broker that is no home of theirs."""
        holder = self.after[rows, columns]
        return np.asarray((holder == NOBODY) | ~any_of(self.homes[rows] == holder[:, None]))

    def _dropped(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return (n, R) the homes of some rows that have no replica, NOBODY elsewhere."""
        homes = self.homes[rows]
        return np.where(shared(homes, self.after[rows]), NOBODY, homes).astype(np.int32)
