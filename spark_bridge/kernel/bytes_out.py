"""What consumers read from each broker, evened by the freedom that the number of leaders leaves.

Two brokers swap: one hands on the leadership of a partition that is read much, and gets one that is read less. So
both lead as many as before. Nobody is brought out of bounds by it, and no data moves.
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
    """All brokers' bytes out as a block is to see them in one round; arrays are broker-sized.

    Attributes:
        load: Bytes per second that are read from what each broker leads, in the whole cluster.
        lo: How much it should be at least.
        hi: How much it should be at most.
        may_lead: Whether it may get a leadership.
        copies: How many blocks act in this round: those with lower numbers. Each does at most its part of what is
            to be done, so all together do not overshoot.
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
    """The rounds of one plan: all blocks at once and the first alone, in turn, as long as that changes something.

    Attributes:
        start: The view of a block that holds all.
        blocks: How many blocks there are.
    """

    start: OutView
    blocks: int
    _cycle: Cycle = field(factory=lambda: Cycle(length=2, most=20), init=False)

    def view(self, load: Integers) -> OutView | None:
        """Return what blocks are to see next, given every broker's bytes out now; None when there is no more to do."""
        now = evolve(self.start, load=load)
        if not now.off().any() or (turn := self._cycle.turn(load)) is None:
            return None
        return evolve(now, copies=1 if turn else self.blocks)


@frozen(eq=False)
class _Swaps:
    """Swaps that may be of use, (N) each, the greatest first: partition `given` goes, and `got` comes in its place."""

    given: Integers
    got: Integers
    giver: Integers
    taker: Integers
    amount: Integers


def even_bytes_out(block: Block, view: OutView, in_scope: NDArray[np.bool_], number: int = 0) -> Block:
    """Swap leaderships between brokers to bring what is read from them within bounds, or nearer.

    Args:
        block: Partitions with leaders chosen.
        view: All brokers' bytes out.
        in_scope: (P) which partitions may get another leader.
        number: The block's number among all blocks.

    Returns:
        The block with other replicas first, or itself where no swap helps.
    """
    if number >= view.copies or not view.off().any():
        return block
    swaps = _swaps(block, view, in_scope)
    leader = block.after[:, 0].astype(np.int64)
    load, lo, hi = view.load.tolist(), view.lo.tolist(), view.hi.tolist()
    swapped: set[int] = set()
    columns = (swaps.given, swaps.got, swaps.giver, swaps.taker, view.copies * swaps.amount)
    for given, got, giver, taker, amount in zip(*(c.tolist() for c in columns), strict=True):
        helps = load[giver] > hi[giver] or load[taker] < lo[taker]
        fits = load[giver] - amount >= lo[giver] and load[taker] + amount <= hi[taker]
        if helps and fits and given not in swapped and got not in swapped:
            swapped.update((given, got))
            leader[given], leader[got] = taker, giver
            load[giver] -= amount
            load[taker] += amount
    return with_leaders(block, leader)


def _swaps(block: Block, view: OutView, in_scope: NDArray[np.bool_]) -> _Swaps:
    """Pair what a broker could hand to another with what it could get from there: the most read with the least."""
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
    """Return for each element its place among those with its key, in this order; and its key."""
    order = order[np.argsort(key[order], kind="stable")]
    first = np.searchsorted(key[order], key[order])
    number = np.empty_like(key)
    number[order] = np.arange(len(key)) - first
    return number, key
