"""Bytes out, evened by swapping leaderships.

Of two brokers, one passes on the leadership of a partition that is read more and gets one that is read less. Both lead
as many partitions as before, neither is taken out of bounds, and no data moves.
"""

from __future__ import annotations

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray

from spark_bridge.kernel.cycle import Cycle
from spark_bridge.kernel.leaders import with_leaders
from spark_bridge.model.block import NOBODY, Block

Integers = NDArray[np.int64]


@frozen(eq=False)
class OutView:
    """The bytes out of all brokers as a block sees them in one round; arrays are broker-sized.

    Attributes:
        load: Bytes per second read from the partitions that each broker leads, in the whole cluster.
        lo: The lower bounds.
        hi: The upper bounds.
        may_lead: Whether a broker may get a leadership.
        copies: The number of blocks that act in this round: those with the lowest numbers. Each does at most its part
            of the work, so all together do not overshoot.
    """

    load: Integers
    lo: Integers
    hi: Integers
    may_lead: NDArray[np.bool_]
    copies: int = 1

    def off(self) -> NDArray[np.bool_]:
        """Return which brokers are out of bounds."""
        return (self.load < self.lo) | (self.load > self.hi)


@define
class OutRounds:
    """The rounds of one plan: all blocks at once and only the first, alternately, while they change anything.

    Attributes:
        start: The view of a single block with all partitions.
        blocks: The number of blocks.
    """

    start: OutView
    blocks: int
    _cycle: Cycle = field(factory=lambda: Cycle(length=2, most=20), init=False)

    def view(self, load: Integers) -> OutView | None:
        """Return the next view, given the bytes out of each broker now; None if nothing remains to do."""
        now = evolve(self.start, load=load)
        if not now.off().any() or (turn := self._cycle.turn(load)) is None:
            return None
        return evolve(now, copies=1 if turn else self.blocks)


@frozen(eq=False)
class _Swaps:
    """Possible swaps, (N) each, the largest first: the giver passes on partition `given` and gets `got` instead."""

    given: Integers
    got: Integers
    giver: Integers
    taker: Integers
    amount: Integers


def even_bytes_out(block: Block, view: OutView, in_scope: NDArray[np.bool_], number: int = 0) -> Block:
    """Swap leaderships between brokers to bring their bytes out within bounds, or closer.

    Args:
        block: Partitions with leaders chosen.
        view: The bytes out of all brokers.
        in_scope: (P) which partitions may get another leader.
        number: The block's number among all blocks.

    Returns:
        The block with other replicas first, or itself if no swap helps.
    """
    if number >= view.copies or not view.off().any():
        return block
    swaps = _swaps(block, view, in_scope)
    leader = block.after[:, 0].astype(np.int64)
    load, lo, hi = view.load.tolist(), view.lo.tolist(), view.hi.tolist()
    swapped: set[int] = set()
    # The blocks that act at once do not see each other, so each counts its swaps for all of them.
    columns = (swaps.given, swaps.got, swaps.giver, swaps.taker, view.copies * swaps.amount)
    for given, got, giver, taker, amount in zip(*(c.tolist() for c in columns), strict=True):
        # Loads change with each swap, and a partition that was swapped has another leader than its other swaps assume.
        helps = load[giver] > hi[giver] or load[taker] < lo[taker]
        fits = load[giver] - amount >= lo[giver] and load[taker] + amount <= hi[taker]
        if helps and fits and given not in swapped and got not in swapped:
            swapped.update((given, got))
            leader[given], leader[got] = taker, giver
            load[giver] -= amount
            load[taker] += amount
    return with_leaders(block, leader)


def _swaps(block: Block, view: OutView, in_scope: NDArray[np.bool_]) -> _Swaps:
    """Pair leaderships that a broker could pass to another with those it could get: the most read with the least."""
    leader = block.after[:, 0]
    off = view.off()
    may = view.may_lead[block.after] & (block.after != NOBODY) & in_scope[:, None]
    may &= (off[block.after] | off[leader][:, None]) & (block.after != leader[:, None])
    partition, place = np.nonzero(may)
    here, there = leader[partition].astype(np.int64), block.after[partition, place].astype(np.int64)
    read, tie, brokers = block.bytes_out[partition], block.tie[partition], len(view.load)
    most, way = _numbered(here * brokers + there, np.lexsort((tie, -read)))
    least, back = _numbered(there * brokers + here, np.lexsort((tie, read)))
    heavy, light = way * len(block) + most, back * len(block) + least
    _, i, j = np.intersect1d(heavy, light, assume_unique=True, return_indices=True)
    amount = read[i] - read[j]
    order = np.lexsort((tie[j], tie[i], -amount))[: int(np.count_nonzero(amount > 0))]
    i, j = i[order], j[order]
    return _Swaps(partition[i], partition[j], here[i], there[i], amount[order])


def _numbered(key: Integers, order: Integers) -> tuple[Integers, Integers]:
    """Return for each element its position, in this order, among those with its key; and its key."""
    order = order[np.argsort(key[order], kind="stable")]
    first = np.searchsorted(key[order], key[order])
    number = np.empty_like(key)
    number[order] = np.arange(len(key)) - first
    return number, key
