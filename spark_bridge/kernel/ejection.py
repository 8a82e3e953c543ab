"""Ejection chains: a replica takes the room of another, which takes that of a third, until all fit on disks.

This is a tabu search. Each step makes the move of a loose replica (see `loose`) that leaves the least excess on disks,
even if that is more than before; for some steps, the replica may not return. The weight of disks that stay too full
increases.

If no partition may get another preferred leader, the first half of the search keeps leaders that need not move. From
then on, or as soon as nothing else can move, a list that shrinks or a crowded rack may drop its leader.
"""

from __future__ import annotations

from random import Random

import numpy as np
from attrs import define
from numpy.typing import NDArray

from spark_bridge.kernel.redeal import Redealing
from spark_bridge.model.block import BYTES

_STEPS, _WORK = 2_500, 60_000_000
"""The limits of a search: steps, and moves considered."""

_MOST = 128
"""The most replicas considered in a step."""

_ASIDE = 20
"""The interval of steps that move any single replica: another broker may block a needed rack."""

_TENURE = 10, 30
"""The range of steps for which a replica may not return to where it was; with fewer, searches run in circles."""

_DEARER = 0.1
"""The weight that a too full disk gains in a step that does not reduce the weighted excess."""


@define(eq=False)
class Ejection:
    """A search among loose replicas for a way to fit them on disks; P partitions, B brokers.

    Attributes:
        work: The partitions, and the loads.
        rng: The source of random numbers, with a fixed seed.
        weight: (B) the cost of a byte of excess on each disk.
        tabu: (P, B) the step up to which a partition may not return to a broker.
        least: The least total excess so far, in bytes.
        leaders: Whether the replicas of preferred leaders that may be dropped are loose.
    """

    work: Redealing
    rng: Random
    weight: NDArray[np.float64]
    tabu: NDArray[np.int32]
    least: int
    leaders: bool

    @classmethod
    def of(cls, work: Redealing) -> Ejection:
        """Start from partitions that all have their wanted number of replicas."""
        brokers = len(work.load)
        tabu = np.zeros((len(work.after), brokers), np.int32)
        least, leaders = np.iinfo(np.int64).max, not work.terms.keeps_leaders
        return cls(work, Random(0), np.ones(brokers), tabu, least, leaders)

    def fits(self) -> bool:
        """Move replicas until no broker that gains any is above its disk; return whether that succeeded."""
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
            # No loose replica can move, leaders included: nothing is left to try.
            if stuck and self.leaders:
                break
            self.leaders |= stuck or 2 * step >= _STEPS or 2 * looked_at >= _WORK
        return False

    def _over(
        self, brokers: NDArray[np.intp] | NDArray[np.int32], load: NDArray[np.int64], gained: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the excess in bytes on brokers, given their bytes and how many of these are new.

        A broker that gains nothing has no excess: it may keep what it has.
        """
        return np.where(gained > 0, np.maximum(load - self.work.terms.disk[brokers], 0), 0)

    def _loose(self, brokers: NDArray[np.intp], most: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows and columns of loose replicas of some brokers, at most a random sample of `most`."""
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
        # A forbidden move is permitted if it leaves less excess than ever before.
        free = may & ((self.tabu[rows] < step) | (total + left[:, None] + more < self.least))
        cost = self.weight[source][:, None] * left[:, None] + self.weight * more
        # If all moves are forbidden, the best of them is made.
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
        """Return the change of the excess: (n) on brokers that replicas leave, (n, B) on those where they may go."""
        work, targets = self.work, np.arange(len(over))
        load, size = work.load[:, BYTES], work.block.weights[rows, BYTES]
        away = ~work.loose.is_home(rows, targets)
        new = away[np.arange(len(rows)), source]
        left = self._over(source, load[source] - size, work.gained[source] - size * new) - over[source]
        more = self._over(targets, load + size[:, None], work.gained + size[:, None] * away) - over
        return left, more
