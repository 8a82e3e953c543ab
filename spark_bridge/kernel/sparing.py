"""Repairs of racks that find no place: these partitions stay as they are, and everything else is still planned."""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.kernel.racks import surplus
from spark_bridge.kernel.room import room_tally
from spark_bridge.kernel.tally import Tally
from spark_bridge.kernel.terms import Terms
from spark_bridge.model.block import BYTES, NOBODY, Block
from spark_bridge.model.goal import MOST_REPLICAS
from spark_bridge.model.lists import any_of, lengths, shared, widened


def are_crowded(lists: NDArray[np.int32], block: Block, terms: Terms) -> NDArray[np.bool_]:
    """Return (P) which partitions have more replicas in a rack than it may hold, given their lists (P, W)."""
    limit = terms.limits[np.minimum(terms.factors(block), MOST_REPLICAS)]
    return any_of(surplus(lists, terms.rack, limit, np.zeros(len(terms.rack)), terms.keeps))


def are_repairs(block: Block, terms: Terms) -> NDArray[np.bool_]:
    """Return (P) which partitions must change only because a rack has too many of their replicas."""
    stays = ~any_of((block.before != NOBODY) & terms.leaves[block.before])
    stays &= terms.factors(block) == lengths(block.before)
    return stays & are_crowded(block.before, block, terms)


@frozen(eq=False)
class Repairs:
    """The query for the number of repairs (see `are_repairs`)."""

    terms: Terms

    def __call__(self, number: int, block: Block) -> Tally:
        """Count those of a block."""
        del number
        return {"repairs": np.array([np.count_nonzero(are_repairs(block, self.terms))])}


@frozen(eq=False)
class Unrepaired:
    """The query for the number of partitions that a plan leaves with too many replicas in a rack."""

    terms: Terms

    def __call__(self, number: int, block: Block) -> Tally:
        """Count those of a block."""
        del number
        return {"unrepaired": np.array([np.count_nonzero(are_crowded(block.after, block, self.terms))])}


@frozen(eq=False)
class Spare:
    """The step that takes back repairs without a place, and those on brokers whose disks have no room for them.

    Attributes:
        terms: The terms.
        load: (B, 3) the loads of the cluster.
        gained: (B) the bytes of new replicas on each broker.
    """

    terms: Terms
    load: NDArray[np.int64]
    gained: NDArray[np.int64]

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Take back repairs in one block, as if no other did; the tally is that of `Deal`."""
        del number
        repairs = are_repairs(block, self.terms)
        width = max(block.before.shape[1], block.after.shape[1])
        before, after = widened(block.before, width), widened(block.after, width)
        back = repairs & (lengths(after) < lengths(before))
        size = block.weights[:, BYTES]
        new = (after != NOBODY) & ~shared(after, before) & repairs[:, None]
        for broker in np.flatnonzero((self.gained > 0) & (self.load[:, BYTES] > self.terms.disk)).tolist():
            excess = int(self.load[broker, BYTES] - self.terms.disk[broker])
            rows = np.flatnonzero(any_of(new & (after == broker)) & (size > 0) & ~back)
            # The largest first, until the rest fits.
            rows = rows[np.lexsort((block.tie[rows], -size[rows]))]
            enough = int(np.searchsorted(np.cumsum(size[rows]), excess)) + 1
            back[rows[:enough]] = True
        after[back] = before[back]
        done = block.with_after(after)
        return done, room_tally(done, self.terms)
