"""Room on disks for replicas that found none when forced moves were dealt: others that were dealt make way.

A replica without a place goes for a while to the disk that lacks the least for it. Then loose replicas move until no
disk is above its size, or nothing helps any more; those that are too much then have no place.
"""

from __future__ import annotations

from random import Random

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.kernel.deal import forced, without_gaps
from spark_bridge.kernel.redeal import Owners, Redealing
from spark_bridge.kernel.tally import Tally, gained, loads
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.view import Turn, View
from spark_bridge.model.block import BYTES, NOBODY, Block
from spark_bridge.model.goal import MOST_REPLICAS

_MOST_UPSET = 200


@frozen(eq=False)
class MakeRoom:
    """The step of a round that makes room.

    Attributes:
        load: (B, 3) the cluster's loads.
        gained: (B) the bytes that every broker gets.
        owners: To which block each broker belongs.
        time: How often room was made before: then some that have a place are dealt again as well, each time others.
        ends: Whether replicas that are too much for a disk are taken back; else they wait for other blocks to make way.
    """

    terms: Terms
    load: NDArray[np.int64]
    gained: NDArray[np.int64]
    owners: Owners
    time: int
    ends: bool

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Make room in one block; as a tally, return what `Deal` does."""
        active = self.owners.of(number, len(self.load))
        view = View.of(block, number, Turn(0, 1, 1), self.terms, self.load)
        places, kept = forced(block, self.terms, view)
        work = Redealing.of(block, kept, self.terms, self.load, self.gained, active, self.owners.blocks)
        if self.time:
            # What evening out would move makes way as well, where nothing else does.
            work.loose = work.loose.with_evening(block, self.terms)
        if self.time and not self.ends:
            _upset(work, places, Random(f"{number} {self.time}"))
        rows, columns = np.nonzero(places)
        order = np.lexsort((columns, block.tie[rows], -block.weights[rows, BYTES]))
        for i in order.tolist() if not self.ends else ():
            _place(work, rows[i : i + 1], columns[i : i + 1])
        work.make_room()
        if self.ends:
            _take_back(work)
        done = block.with_after(without_gaps(work.after))
        tally = {"load": loads(done, len(self.load)), "gained": gained(done, len(self.load))}
        return done, {**tally, "unplaced": _unplaced(done, self.terms)}


def _place(work: Redealing, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> None:
    """Put a replica on the broker that may have it and lacks the least room."""
    targets = np.flatnonzero(work.active)
    targets = targets[work.loose.may(rows, columns, targets)[0]]
    if len(targets):
        over = work.load[targets, BYTES] - work.terms.disk[targets]
        work.move(int(rows[0]), int(columns[0]), int(targets[over.argmin()]))


def _upset(work: Redealing, places: NDArray[np.bool_], rng: Random) -> None:
    """Take some new replicas from the brokers that belong to the block, which opens their places."""
    rows, columns = np.nonzero(work.after != NOBODY)
    holder = work.after[rows, columns]
    home = (work.loose.homes[rows] == holder[:, None]).any(axis=1)
    able = np.flatnonzero(~home & work.active[holder] & (work.block.weights[rows, BYTES] > 0)).tolist()
    for i in rng.sample(able, min(_MOST_UPSET, len(able) // 3)):
        work.move(int(rows[i]), int(columns[i]), NOBODY)
        places[rows[i], columns[i]] = True


def _take_back(work: Redealing) -> None:
    """Take new replicas from brokers that are above their disks: the smallest that does, or else the largest first."""
    over = work.active & (work.gained > 0) & (work.load[:, BYTES] > work.terms.disk)
    for broker in np.flatnonzero(over).tolist():
        rows, columns = np.divmod(work.places[broker], work.after.shape[1])
        new = ~work.loose.is_home(rows, np.array([broker], np.intp))[:, 0]
        size = work.block.weights[rows, BYTES]
        order = np.lexsort((work.block.tie[rows], size))
        left = order[new[order] & (size[order] > 0)].tolist()
        while left and (lacks := int(work.load[broker, BYTES] - work.terms.disk[broker])) > 0:
            enough = [i for i in left if size[i] >= lacks]
            i = enough[0] if enough else left[-1]
            left.remove(i)
            work.move(int(rows[i]), int(columns[i]), NOBODY)


def _unplaced(block: Block, terms: Terms) -> NDArray[np.int64]:
    """Return by replication factor how many replicas have no place, and how many bytes these are."""
    wanted = terms.factors(block)
    missing = wanted - np.count_nonzero(block.after != NOBODY, axis=1)
    unplaced = np.zeros((MOST_REPLICAS + 1, 2), np.int64)
    np.add.at(unplaced, np.minimum(wanted, MOST_REPLICAS), np.stack([missing, missing * block.weights[:, BYTES]], 1))
    return unplaced
