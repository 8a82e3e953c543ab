"""Loose replicas: those for which the rules force a move and leave the choice where to, or which one.

A new replica may go to any broker that receives. One that stays may go where another of its partition was, if that one
is dropped: from a list that shrinks, or from a rack that has too many. So whatever is chosen, as many replicas move, of
the same partitions.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.kernel.terms import Terms
from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.goal import MOST_REPLICAS


@frozen(eq=False)
class Loose:
    """What may be chosen in a block; P partitions, W places in each list, R replicas before.

    Attributes:
        after: (P, W) the lists, which may change.
        homes: (P, R) the brokers that had the partition, NOBODY for those that have to lose it.
        limit: (P) how many replicas of the partition a rack may hold.
        rack: (B) rack numbers, negative without a rack.
        receives: (B) who may get new replicas.
    """

    after: NDArray[np.int32]
    homes: NDArray[np.int32]
    limit: NDArray[np.int32]
    rack: NDArray[np.int32]
    receives: NDArray[np.bool_]

    @classmethod
    def of(cls, block: Block, after: NDArray[np.int32], terms: Terms) -> Loose:
        """Look at a block's lists."""
        homes = np.where((block.before != NOBODY) & ~terms.leaves[block.before], block.before, NOBODY)
        limit = terms.limits[np.minimum(terms.factors(block), MOST_REPLICAS)]
        return cls(after, homes.astype(np.int32), limit, terms.rack, terms.receives)

    def at(self, rows: NDArray[np.intp], columns: NDArray[np.intp], *, first: bool) -> NDArray[np.bool_]:
        """Return which replicas at some places are loose; the first of a list that stays only where that is asked."""
        swappable = (self._dropped(rows) != NOBODY).any(axis=1)
        if not first:
            swappable &= self.homes[rows, 0] != self.after[rows, columns]
        return np.asarray(swappable | self._is_new(rows, columns))

    def targets(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return (B) to which brokers any of some loose replicas may go."""
        found = self.receives & self._is_new(rows, columns).any()
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
        new = self._is_new(rows, columns)[:, None] & self.receives[targets]
        return np.asarray(~there & spread & (new | self.is_home(rows, targets)))

    def is_home(self, rows: NDArray[np.intp], brokers: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return (n, k) whether brokers had partitions and may keep them."""
        return np.asarray((self.homes[rows][:, :, None] == brokers).any(axis=1))

    def _is_new(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which replicas at some places are, or are to be, on a broker that is no home of theirs."""
        holder = self.after[rows, columns]
        return np.asarray((holder == NOBODY) | (self.homes[rows] != holder[:, None]).all(axis=1))

    def _dropped(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return (n, R) the homes of some rows that have no replica, NOBODY elsewhere."""
        homes = self.homes[rows]
        kept = (homes[:, :, None] == self.after[rows][:, None, :]).any(axis=2)
        return np.where(kept, NOBODY, homes).astype(np.int32)
