"""The leaders of all brokers as a block sees them, and the price of a leadership on each broker.

The leaders of a broker form a pile of units, numbered from 1. A unit above `hi` costs more the higher it is in
relation to the broker's share, a unit up to `lo` earns more the lower it is, and one between is free. Prices never
fall with height, so choosing leaders is a flow problem with convex costs. A plan that no path between brokers makes
cheaper is the cheapest of all, whatever the prices, as long as they do not fall with height (Harvey, Ladner, Lovasz and
Tamir, "Semi-matchings for bipartite graphs and load balancing", show it for unit costs). Its highest load in relation
to a share is the least possible, and no broker is out of bounds if all can be within.

If c blocks act at once, each owns every c-th unit of a pile. No unit has two owners, so all blocks together pay no more
than the sum of what each expects, and do not overshoot.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

Integers = NDArray[np.int64]

FINEST = 4.0**-10
"""The finest grain: loads that differ by a smaller part of their shares count as equal."""

_STEEPEST = 1 << 30
"""The largest level, for a unit far beyond any bound, as on a broker without a share."""

MUST_LEAVE = 1 << 31
"""The price of any unit on a broker that may not lead; it exceeds all other prices."""


@frozen(eq=False)
class LeaderView:
    """The leaders of all brokers as a block sees them in one round; arrays are broker-sized.

    Attributes:
        load: The number of partitions that each broker leads in the whole cluster.
        lo: The least number that it should lead.
        hi: The largest number that it should lead; not below `lo`.
        share: Its share of leaders.
        may_lead: Whether it may get a leadership; a broker that may not loses all it can.
        keeps: Whether it keeps what it leads, and gets only what no other broker may lead; None for no broker.
        copies: The number of blocks that act in this round: those with the lowest numbers.
        grain: How finely loads beyond the bounds are compared, as a part of the share; None to consider only bounds.
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
        """Return whether the block with this number acts in this round."""
        return block < self.copies

    def top(self, block: int) -> Integers:
        """Return the highest unit of each broker's pile that the block owns; the next one is `copies` below it."""
        scattered = np.arange(len(self.load)) * 40_503 >> 4
        return self.load - (block + scattered) % self.copies

    def price(self, unit: Integers, grain: float | None) -> Integers:
        """Return the price of one unit on each broker, rounded down to the grain."""
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
        """Return whether any broker that may lead has a unit too many or too few."""
        give, take = self.price(top, None), self.price(top + self.copies, None)
        return bool(np.any(self.may_lead & ((give > 0) | (take < 0))))

    def lacking(self) -> bool:
        """Return whether any broker of the cluster is out of bounds, or leads although it may not."""
        within = np.where(self.may_lead, (self.load >= self.lo) & (self.load <= self.hi), self.load == 0)
        return not np.all(within)

    def grains(self, top: Integers) -> list[float | None]:
        """Return grains from coarse to fine, so that loads far apart are evened first, many at once."""
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
    """Return how many units, starting at `first` and `step` apart, have the price of the first; at most `most`."""
    same = price(first)
    known, beyond = np.ones_like(first), np.full_like(first, most + 1)
    while np.any(beyond - known > 1):
        middle = (known + beyond) // 2
        alike = price(first + step * (middle - 1)) == same
        known, beyond = np.where(alike, middle, known), np.where(alike, beyond, middle)
    return known
