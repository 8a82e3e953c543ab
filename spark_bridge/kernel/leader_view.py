"""The leaders of all brokers as one block is shown them, and the worth of a leadership there.

Think of the leaders of a broker as a pile of units, numbered from 1. A unit above `hi` costs the more the higher it
lies in relation to the broker's share, a unit up to `lo` earns the more the lower it lies, one between them is free.
Prices never fall with height, so choosing leaders is a flow with convex costs: a plan which no path between brokers
makes cheaper is the cheapest of all, whatever the prices are, as long as higher means dearer (Harvey, Ladner, Lovasz
and Tamir, "Semi-matchings for bipartite graphs and load balancing", say it of unit costs). So the highest load in
relation to its share is least then, and so is the number of brokers out of bounds where all can be within.

When c blocks act at once, each of them has every c-th unit of a pile for its own, another one for each block. As no
unit has two owners, the sum of what the blocks do is no dearer than the sum of what they reckon with: no overshoot.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

Integers = NDArray[np.int64]

FINEST = 4.0**-10
"""The finest grain: loads that differ by less of their shares count as equal."""

_STEEPEST = 1 << 30
"""The price of a unit that is beyond all measure, as on a broker with no share."""

MUST_LEAVE = 1 << 31
"""The price of any unit on a broker that may not lead: above all others."""


@frozen(eq=False)
class LeaderView:
    """All brokers' leaders as a block is to see them in one round; arrays are broker-sized.

    Attributes:
        load: How many partitions each broker leads, in the whole cluster.
        lo: How many it should lead at least.
        hi: How many it should lead at most; not below `lo`.
        share: How many would be its part.
        may_lead: Whether it may get a leadership; one that may not loses all it can.
        keeps: Whether it keeps what it leads, and gets only what nobody else may lead; None for nobody.
        copies: How many blocks act in this round: those with lower numbers.
        grain: How fine loads beyond the bounds are compared, as a part of the share; None to care for bounds alone.
    """

    load: Integers
    lo: Integers
    hi: Integers
    share: NDArray[np.float64]
    may_lead: NDArray[np.bool_]
    copies: int = 1
    keeps: NDArray[np.bool_] | None = None
    grain: float | None = FINEST

    def acts(self, block: int) -> bool:
        """Return whether the block of this number does something in this round."""
        return block < self.copies

    def top(self, block: int) -> Integers:
        """Return the highest unit of every broker's pile that the block owns; `copies` below it is the next."""
        scattered = np.arange(len(self.load)) * 40_503 >> 4
        return self.load - (block + scattered) % self.copies

    def price(self, unit: Integers, grain: float | None) -> Integers:
        """Return the price of one unit on every broker, rounded down to the grain."""
        over, under = unit > self.hi, unit <= self.lo
        if grain is None:
            levels = over.astype(np.int64) - under
        else:
            share = np.maximum(self.share, FINEST)
            ceiling = float(np.max(self.lo / share, initial=0.0))
            levels = np.where(over, _level(unit / share, grain), 0)
            levels = np.where(under, -_level(ceiling - (unit - 1) / share, grain), levels)
        return np.where(self.may_lead, levels, MUST_LEAVE)

    def out_of_bounds(self, top: Integers) -> bool:
        """Return whether some broker that may lead has a unit too many or too few."""
        give, take = self.price(top, None), self.price(top + self.copies, None)
        return bool(np.any(self.may_lead & ((give > 0) | (take < 0))))

    def lacking(self) -> bool:
        """Return whether some broker of the cluster is out of bounds, or leads and may not."""
        within = np.where(self.may_lead, (self.load >= self.lo) & (self.load <= self.hi), self.load == 0)
        return not np.all(within)

    def grains(self, top: Integers) -> list[float | None]:
        """Return grains from coarse to fine: loads far apart are evened first, and many at once."""
        if self.grain is None:
            return [None]
        share = np.maximum(self.share, FINEST)
        farthest = float(np.max(np.maximum(top, self.lo)[self.may_lead] / share[self.may_lead], initial=1.0))
        finer: list[float | None] = [None]
        grain = 4.0 ** np.ceil(np.log2(farthest) / 2)
        while grain >= self.grain:
            finer.append(float(grain))
            grain /= 4
        return finer


def _level(height: NDArray[np.float64], grain: float) -> Integers:
    return 1 + np.clip(height / grain, 0, _STEEPEST).astype(np.int64)


def count_alike(price: Callable[[Integers], Integers], first: Integers, step: int, most: int) -> Integers:
    """Return how many units from `first` on, `step` apart and at most `most`, have the first one's price."""
    same = price(first)
    known, beyond = np.ones_like(first), np.full_like(first, most + 1)
    while np.any(beyond - known > 1):
        middle = (known + beyond) // 2
        alike = price(first + step * (middle - 1)) == same
        known, beyond = np.where(alike, middle, known), np.where(alike, beyond, middle)
    return known
