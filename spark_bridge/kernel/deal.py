"""Forced moves: replicas that must leave their broker or rack, and places that a new replication factor adds.

Replicas are dealt from the heaviest to the lightest, each to the emptiest broker that may have it. Light replicas come
last and even out the number of replicas, so a broker that is full of bytes also gets its share of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.kernel.destinations import Destinations
from spark_bridge.kernel.racks import surplus
from spark_bridge.kernel.tally import Tally, gained, loads
from spark_bridge.kernel.terms import ALL_MEASURES, UNBOUNDED, Terms
from spark_bridge.kernel.view import Turn, View
from spark_bridge.model.block import BYTES, BYTES_IN, MEASURES, NOBODY, REPLICAS, Block
from spark_bridge.model.goal import MOST_REPLICAS
from spark_bridge.model.lists import any_of, lengths, widened

LIGHT = 0.01
"""A replica is light up to this part of the mean in bytes and in bytes in; all light ones are at most 1 % of either."""


@frozen(eq=False)
class Deal:
    """The step of a round that deals forced moves; `load` is the loads of the cluster, (B, 3)."""

    terms: Terms
    load: NDArray[np.int64]
    turn: Turn

    def __call__(self, number: int, block: Block) -> tuple[Block, Tally]:
        """Deal one block's forced replicas.

        Returns:
            The block, and a tally of the loads, the bytes of new replicas on each broker (`gained`) and, by replication
            factor, the number and bytes of replicas that found no place (`unplaced`, (MOST_REPLICAS + 1, 2)).
        """
        view = View.of(block, number, self.turn, self.terms, self.load)
        open_places, kept = forced(block, self.terms, view)
        room = np.full(self.load.shape, UNBOUNDED, np.int64)
        room[:, BYTES] = self.terms.disk - self._reserve(block)
        empty = block.weights[:, BYTES] == 0
        after, unplaced = kept.copy(), np.zeros((MOST_REPLICAS + 1, 2), np.int64)
        for rows, measures in in_turn(block):
            emptiest = view.by(self.terms, measures)
            # Empty replicas take no room, so they may also go to a full disk.
            for some, limit in ((rows & ~empty, room), (rows & empty, np.full_like(room, UNBOUNDED))):
                destinations = Destinations.of(emptiest, self.terms.receives, self.terms.rack, limit, number)
                unplaced += _fill(block, after, open_places & some[:, None], self.terms, destinations)
        done = block.with_after(without_gaps(after))
        brokers = len(self.load)
        return done, {"load": loads(done, brokers), "gained": gained(done, brokers), "unplaced": unplaced}

    def _reserve(self, block: Block) -> int:
        """Return how many bytes of each disk are kept free because other blocks deal at the same time."""
        others = self.turn.copies - 1
        return int(others * block.weights[:, BYTES].mean()) if others and len(block) else 0


def in_turn(block: Block) -> Iterator[tuple[NDArray[np.bool_], tuple[int, ...]]]:
    """Yield the partitions to deal together, (P), with the measures that determine how full brokers are for them.

    Light partitions make no broker fuller, so they come last and are dealt by the number of replicas.
    """
    heavy = any_of((block.weights > light(block))[:, (BYTES, BYTES_IN)])
    yield heavy, ALL_MEASURES
    yield ~heavy, (REPLICAS,)


def light(block: Block) -> NDArray[np.float64]:
    """Return (3) the weights up to which a replica of a block is light."""
    return np.asarray(LIGHT * block.weights.mean(axis=0)) if len(block) else np.zeros(len(MEASURES))


def forced(block: Block, terms: Terms, view: View) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
    """Return the open places of the lists, and the lists with NOBODY there.

    The lists are as wide as the longest wanted one. Replicas that leave are subtracted from the view.
    """
    wanted = terms.factors(block)
    limits = terms.limits[np.minimum(wanted, MOST_REPLICAS)], terms.rack_limits(block)
    width = max(int(wanted.max(initial=1)), block.after.shape[1])
    kept = widened(block.after, width)
    _drop(block, kept, (kept != NOBODY) & terms.leaves[kept], view)
    for rows, measures in in_turn(block):
        long = np.where(rows, wanted, UNBOUNDED)
        _shrink(block, kept, long, limits, view.by(terms, measures), terms)
    view = view.by(terms, view.measures)
    if terms.repairs:
        _drop(block, kept, surplus(kept, terms.rack, limits[0], np.array(view.full), terms.keeps), view)
    missing = wanted - lengths(kept)
    # Places of replicas that leave are filled first, then those at the end.
    free = kept == NOBODY
    open_places = free & (np.cumsum(free, axis=1) <= missing[:, None])
    return open_places, kept


def _drop(block: Block, kept: NDArray[np.int32], places: NDArray[np.bool_], view: View) -> None:
    for row, column in np.argwhere(places).tolist():
        view.add(int(kept[row, column]), block.weights[row].tolist(), -1)
    kept[places] = NOBODY


def _shrink(
    block: Block,
    kept: NDArray[np.int32],
    wanted: NDArray[np.int64],
    limits: tuple[NDArray[np.int32], NDArray[np.int32]],
    view: View,
    terms: Terms,
) -> None:
    """Drop replicas from lists that are longer than wanted: each from the fullest broker, never the first of a list.

    A copy that cannot be read is worth less than one that can. So those on brokers that do not serve are dropped before
    all others, the first of a list included. Apart from this, replicas are dropped first from racks above the first
    limit, which would have to move otherwise, then from those above the second one, then from any. Partitions are taken
    from the heaviest to the lightest, so that the light ones even out what the heavy ones left.
    """
    long = np.flatnonzero(lengths(kept) > wanted)
    rack_of, keeps = terms.rack.tolist(), terms.keeps.tolist()
    for row in long[np.lexsort((block.tie[long], -block.weights[long, BYTES]))].tolist():
        weight = block.weights[row].tolist()
        holders = [b for b in kept[row].tolist() if b != NOBODY]
        while len(holders) > wanted[row]:
            down = [b for b in holders if keeps[b]]
            able = down or holders[1:]
            for limit in limits:
                crowded = full_racks(holders, rack_of, int(limit[row]) + 1)
                if any(rack_of[b] in crowded for b in able):
                    able = [b for b in able if rack_of[b] in crowded]
                    break
            gone = max(able, key=view.full.__getitem__)
            view.add(gone, weight, -1)
            kept[row, kept[row] == gone] = NOBODY
            holders.remove(gone)


def _fill(
    block: Block, after: NDArray[np.int32], places: NDArray[np.bool_], terms: Terms, destinations: Destinations
) -> NDArray[np.int64]:
    """Fill places of the lists; return the replicas that found no broker (see `Deal`)."""
    unplaced = np.zeros((MOST_REPLICAS + 1, 2), np.int64)
    rows, columns = np.nonzero(places)
    order = np.lexsort((columns, block.tie[rows], -block.weights[rows, BYTES]))
    rack_of, limits = terms.rack.tolist(), terms.rack_limits(block).tolist()
    factors = terms.factors(block)
    for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        factor = min(int(factors[row]), MOST_REPLICAS)
        holders = [b for b in after[row].tolist() if b != NOBODY]
        weight = block.weights[row].tolist()
        barred = full_racks(holders, rack_of, limits[row])
        broker = destinations.choose(holders, barred, weight)
        # Only a single copy is worth a complete search: with several, replicas without a place are dealt again.
        if broker is None and destinations.view.copies == 1:
            broker = destinations.search(holders, barred, weight)
        if broker is None:
            unplaced[factor] += (1, weight[BYTES])
        else:
            after[row, column] = broker
            destinations.take(broker, rack_of[broker], weight)
    return unplaced


def without_gaps(after: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the lists without gaps; these are left by removed replicas if the replication factor is lowered."""
    order = np.argsort(after == NOBODY, axis=1, kind="stable")
    return np.take_along_axis(after, order, axis=1)


def full_racks(holders: list[int], rack_of: list[int], limit: int) -> set[int]:
    """Return the racks that are at their limit for a partition."""
    racks = [rack_of[b] for b in holders if rack_of[b] >= 0]
    return {r for r in racks if racks.count(r) >= limit}
