"""Ejection chains: a replica takes the room of another, which takes that of a third, until all fit on disks.

A tabu search: each step moves the loose replica (see `loose`) that leaves the least too much on disks, even where that
is more than before, and for some steps the replica may not return. Disks that stay too full weigh more and more.

Where no partition may get another preferred leader, the first half of the search keeps leaders where they need not
move. The other half, and all of it where nothing else can move, lets a list that shrinks or a crowded rack drop one.
"""

from __future__ import annotations

from random import Random

import numpy as np
from attrs import define
from numpy.typing import NDArray

from spark_bridge.kernel.redeal import Redealing
from spark_bridge.model.block import BYTES

_STEPS, _WORK = 2_500, 60_000_000
"""Bounds of a search: steps, and moves weighed up."""

_MOST = 128
"""The replicas that are looked at in a step."""

_ASIDE = 20
"""Each so manieth step moves any one replica: a broker that is not too full may bar the rack that others need."""

_TENURE = 10, 30
"""The least and the most steps in which a replica does not return to where it was; fewer let searches go in circles."""

_DEARER = 0.1
"""The weight that a disk gains in a step that leaves no less too much."""


@define(eq=False)
class Ejection:
    """A search among loose replicas for a way to fit them on disks; P partitions, B brokers.

    Attributes:
        work: The partitions, and the loads.
        rng: The source of chance: the same for the same partitions.
        weight: (B) the cost of a byte too much on each disk.
        tabu: (P, B) the steps up to which a partition does not return to a broker.
        least: The fewest bytes too much so far, all disks together.
        leaders: Whether preferred leaders that may be dropped are loose.
    """

    work: Redealing
    rng: Random
    weight: NDArray[np.float64]
    tabu: NDArray[np.int32]
    least: int
    leaders: bool

    @classmethod
    def of(cls, work: Redealing) -> Ejection:
        """Look at partitions, all of which have as many replicas as they shall have."""
        brokers = len(work.load)
        tabu = np.zeros((len(work.after), brokers), np.int32)
        least, leaders = np.iinfo(np.int64).max, not work.terms.keeps_leaders
        return cls(work, Random(0), np.ones(brokers), tabu, least, leaders)

    def fits(self) -> bool:
        """Move replicas until nobody who gets any is above its disk; return whether that came about."""
        brokers, looked_at = np.arange(len(self.weight)), 0
        for step in range(1, _STEPS + 1):
            over = self._over(brokers, self.work.load[:, BYTES], self.work.gained)
            if not over.any():
                return True
            aside = step % _ASIDE == 0
            rows, columns = self._loose(brokers if aside else np.flatnonzero(over), 1 if aside else _MOST)
            looked_at += len(rows) * len(brokers)
            if looked_at > _WORK:
                break
            stuck = not self._move(step, over, rows, columns) and not aside
            if stuck and self.leaders:
                break
            self.leaders |= stuck or 2 * step >= _STEPS or 2 * looked_at >= _WORK
        return False

    def _over(
        self, brokers: NDArray[np.intp] | NDArray[np.int32], load: NDArray[np.int64], gained: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return how many bytes are too much on brokers with so many, of which so many are new."""
        return np.where(gained > 0, np.maximum(load - self.work.terms.disk[brokers], 0), 0)

    def _loose(self, brokers: NDArray[np.intp], most: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows and columns of loose replicas of some brokers, of many only so many."""
        work = self.work
        places = np.concatenate([work.places[broker] for broker in brokers.tolist()])
        rows, columns = np.divmod(places, work.after.shape[1])
        loose = work.loose.at(rows, columns, first=self.leaders)
        found = np.flatnonzero(loose & (work.block.weights[rows, BYTES] > 0))
        if len(found) > most:
            found = np.sort(self.rng.sample(found.tolist(), most))
        return rows[found], columns[found]

    def _move(self, step: int, over: NDArray[np.int64], rows: NDArray[np.intp], columns: NDArray[np.intp]) -> bool:
        """Make the best move of some replicas; return whether there is one."""
        work, targets = self.work, np.arange(len(over))
        source = work.after[rows, columns]
        may = work.loose.may(rows, columns, targets)
        if not may.any():
            return False
        left, more = self._changes(over, rows, source)
        total = int(over.sum())
        self.least = min(self.least, total)
        free = may & ((self.tabu[rows] < step) | (total + left[:, None] + more < self.least))
        cost = self.weight[source][:, None] * left[:, None] + self.weight * more
        cost = np.where(free if free.any() else may, cost, np.inf)
        i, t = np.unravel_index(int(cost.argmin()), cost.shape)
        if cost[i, t] >= 0:
            self.weight[over > 0] += _DEARER
        self.tabu[rows[i], source[i]] = step + self.rng.randint(*_TENURE)
        work.move(int(rows[i]), int(columns[i]), int(t))
        return True

    def _changes(
        self, over: NDArray[np.int64], rows: NDArray[np.intp], source: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return by how much what is too much changes: (n) where replicas leave, and (n, B) where they may go."""
        work, targets = self.work, np.arange(len(over))
        load, size = work.load[:, BYTES], work.block.weights[rows, BYTES]
        away = ~work.loose.is_home(rows, targets)
        new = away[np.arange(len(rows)), source]
        left = self._over(source, load[source] - size, work.gained[source] - size * new) - over[source]
        more = self._over(targets, load + size[:, None], work.gained + size[:, None] * away) - over
        return left, more
