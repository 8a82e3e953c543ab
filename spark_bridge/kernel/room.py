"""Room on disks for replicas that found none when forced moves were dealt: other replicas make way.

A replica without a place is put on the disk where the least room is missing. Then loose replicas move until no disk is
above its size or no move helps; replicas that are still too much have no place.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.kernel.deal import forced, without_gaps
from spark_bridge.kernel.redeal import Redealing, Standing
from spark_bridge.kernel.tally import Tally, gained, loads
from spark_bridge.kernel.terms import Terms
from spark_bridge.kernel.view import Turn, View
from spark_bridge.model.block import BYTES, NOBODY, Block
from spark_bridge.model.goal import MOST_REPLICAS
from spark_bridge.model.lists import lengths


@frozen(eq=False)
class MakeRoom:
    """The step of a round that makes room.

    Attributes:
        terms: The terms.
        standing: The loads when the round begins.
        evens: Whether replicas that evening out may move make way as well.
        ends: Whether replicas that are too much for a disk are removed; else they wait for other blocks to make way.
    """

    terms: Terms
    standing: Standing
    evens: bool
    ends: bool

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Make room in one block; the tally is that of `Deal`."""
        work, places = opened(number, block, self.terms, self.standing, evens=self.evens)
        if not self.ends:
            place(work, places)
        work.make_room()
        if self.ends:
            _take_back(work)
        done = block.with_after(without_gaps(work.after))
        return done, room_tally(done, self.terms)


def opened(
    number: int, block: Block, terms: Terms, standing: Standing, *, evens: bool
) -> tuple[Redealing, NDArray[np.bool_]]:
    """Return a block without the replicas that must leave, and its open places (P, W); see `MakeRoom` for `evens`."""
    places, kept = forced(block, terms, View.of(block, number, Turn(0, 1, 1), terms, standing.load))
    work = Redealing.of(block, kept, terms, standing, number)
    if evens:
        work.loose = work.loose.with_evening(block, terms)
    return work, places


def place(work: Redealing, places: NDArray[np.bool_]) -> None:
    """Fill open places (P, W), the largest first, each with the permitted broker on which the least room is missing."""
    rows, columns = np.nonzero(places)
    order = np.lexsort((columns, work.block.tie[rows], -work.block.weights[rows, BYTES]))
    for i in order.tolist():
        targets = np.flatnonzero(work.active)
        targets = targets[work.loose.may(rows[i : i + 1], columns[i : i + 1], targets)[0]]
        if len(targets):
            over = work.load[targets, BYTES] - work.terms.disk[targets]
            work.move(int(rows[i]), int(columns[i]), int(targets[over.argmin()]))


def _take_back(work: Redealing) -> None:
    """Remove new replicas from brokers above their disks: the smallest one that suffices, else the largest first."""
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


def room_tally(block: Block, terms: Terms) -> Tally:
    """Return the tally of `Deal`."""
    brokers = len(terms.rack)
    return {"load": loads(block, brokers), "gained": gained(block, brokers), "unplaced": unplaced(block, terms)}


def unplaced(block: Block, terms: Terms) -> NDArray[np.int64]:
    """Return, by replication factor, the number and bytes of replicas without a place."""
    wanted = terms.factors(block)
    missing = wanted - lengths(block.after)
    unplaced = np.zeros((MOST_REPLICAS + 1, 2), np.int64)
    np.add.at(unplaced, np.minimum(wanted, MOST_REPLICAS), np.stack([missing, missing * block.weights[:, BYTES]], 1))
    return unplaced
