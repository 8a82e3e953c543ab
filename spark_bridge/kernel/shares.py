"""Each broker's share of the cluster, and the bounds for its load.

A share is a part of the total in proportion to capacity, as nearly as the rules permit. A broker holds at most one
replica of a partition, and a rack no more than its limit of each (see `racks`). So a set of brokers can hold only a
limited load (see `Rooms`), and the others must hold the rest: if all brokers except one have room for two of three
replicas, that one holds a replica of each partition. Shares respect this for each set of brokers, which bounds every
broker and every rack from above and from below.

What sets of brokers can hold is a submodular function, because an additional broker adds less to a larger set. So the
shares that minimize the fullness of the fullest broker also maximize that of the emptiest one. They are found by
decomposition: the total is divided in proportion to capacity; if some brokers would have more than they can hold, those
the farthest above it get exactly what they can hold, the others share the rest, and both groups are divided again.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

_TIGHT = 1e-9
"""The part by which sums of shares may exceed the room because of rounding errors."""

_FEW = 6
"""Up to this number of factors, all combinations are tried; above it, only those that start with the smallest ones."""

_LEAST, _PRECISION = 1e-6, 1e-13
"""The tolerance for rounding errors of bounds: absolute, and relative."""


@frozen(eq=False)
class Rooms:
    """The load of F replication factors that sets of brokers can hold, given how many of them are in each of U racks.

    A broker without a rack counts as its own rack.

    Attributes:
        wanted: (F) the weights of all replicas that need a place.
        single: (F) the weights of one replica of each partition, which is what a broker can hold.
        of_rack: (F, U) what each rack can hold.
    """

    wanted: NDArray[np.float64]
    single: NDArray[np.float64]
    of_rack: NDArray[np.float64]

    def of(self, counts: NDArray[np.int64]) -> float:
        """Return what the given numbers of brokers in each rack (U) can hold."""
        return float(np.minimum(self.wanted, self.in_racks(counts).sum(axis=1)).sum())

    def in_racks(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return (F, U) what the given numbers of brokers in each rack (U) can hold there."""
        return np.asarray(np.minimum(self.of_rack, self.single[:, None] * counts))


def proportional(total: float, capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide a total in proportion to capacities (B); if all are zero, all get zero."""
    return np.asarray(capacity * (total / max(float(capacity.sum()), np.finfo(np.float64).tiny)))


def shares(
    capacity: NDArray[np.float64], unit: NDArray[np.intp], beside: NDArray[np.float64], rooms: Rooms
) -> NDArray[np.float64]:
    """Divide a load in proportion to capacity, as nearly as the rules permit.

    Args:
        capacity: (B) capacities; 0 for brokers that get no share.
        unit: (B) the number of each broker's rack in `rooms`.
        beside: (B) what each broker keeps besides what is divided.
        rooms: What brokers can hold.

    Returns:
        (B) shares, including what is kept.
    """
    share = np.zeros(len(capacity))
    # Groups of brokers to divide among, each with the number of brokers per rack that already have all they can.
    todo = [(np.zeros(rooms.of_rack.shape[1], np.int64), np.flatnonzero(capacity > 0))]
    while todo:
        full, open_ = todo.pop()
        total = rooms.of(full + _counts(unit[open_], full)) - rooms.of(full)
        found = _levelled(total, capacity[open_], beside[open_])
        tight = _tightest(rooms, full, unit[open_], found, total)
        if not tight.any() or tight.all():
            share[open_] = beside[open_] + found
        else:
            todo += [(full, open_[tight]), (full + _counts(unit[open_[tight]], full), open_[~tight])]
    return share


def _counts(unit: NDArray[np.intp], like: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.bincount(unit, minlength=len(like)).astype(np.int64)


def _levelled(total: float, capacity: NDArray[np.float64], beside: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide a total so that, with what they keep, brokers are equally full for their capacity or get nothing."""
    levels = beside / capacity
    order = np.argsort(levels, kind="stable")
    reached = (max(total, 0.0) + np.cumsum(beside[order])) / np.cumsum(capacity[order])
    taking = np.flatnonzero(reached >= levels[order])
    level = reached[taking[-1]] if len(taking) else 0.0
    return np.asarray(np.maximum(level * capacity - beside, 0.0))


def _tightest(
    rooms: Rooms, full: NDArray[np.int64], unit: NDArray[np.intp], share: NDArray[np.float64], total: float
) -> NDArray[np.bool_]:
    """Return (n) the set of brokers that exceeds most what it can hold together; empty if none exceeds it.

    In each rack, these are the brokers with the largest shares. Of each replication factor they hold either all
    remaining replicas, or what each rack has room for. Once this is settled for all factors, each rack can be
    considered alone.

    Args:
        rooms: What brokers can hold.
        full: (U) the number of brokers in each rack that already have all they can hold.
        unit: (n) racks.
        share: (n) shares.
        total: Their sum.
    """
    if not len(unit):
        return np.zeros(0, np.bool_)
    order = np.lexsort((-share, unit))
    racks, first = np.unique(unit[order], return_index=True)
    nth = np.repeat(np.arange(len(racks)), np.diff(first, append=len(unit)))
    upto, had = np.arange(len(unit)) - first[nth] + 1, np.cumsum(share[order])
    before = (had - share[order])[first]
    there = rooms.in_racks(full)
    here = racks[nth]
    more = np.minimum(rooms.of_rack[:, here], rooms.single[:, None] * (full[here] + upto)) - there[:, here]
    left = np.maximum(rooms.wanted - there.sum(axis=1), 0.0)
    hold_all = _settled(left, rooms.single, more[:, np.append(first[1:], len(unit)) - 1].sum(axis=1))
    slack = ~hold_all @ more - (had - before[nth])
    least = np.minimum.reduceat(slack, first, axis=1)
    value = hold_all @ left + np.minimum(least, 0.0).sum(axis=1)
    best = int(value.argmin())
    tight = np.zeros(len(unit), np.bool_)
    if value[best] < -(total * _TIGHT + _LEAST):
        is_least = (slack[best] <= least[best][nth]) & (slack[best] < 0)
        last = np.maximum.reduceat(np.where(is_least, np.arange(len(unit)), -1), first)
        tight[order] = np.arange(len(unit)) <= last[nth]
    return tight


def _settled(left: NDArray[np.float64], single: NDArray[np.float64], most: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return (C, F) the cases to consider: for which factors all remaining replicas are held.

    Args:
        left: (F) the weights of the remaining replicas.
        single: (F) the weights of one replica of each partition.
        most: (F) what fits in the racks.
    """
    open_ = np.flatnonzero((left > 0) & (left < most))
    if len(open_) <= _FEW:
        cases = (np.arange(2 ** len(open_))[:, None] >> np.arange(len(open_))) % 2 > 0
    else:
        open_ = open_[np.argsort(left[open_] / single[open_], kind="stable")]
        cases = np.tri(len(open_) + 1, len(open_), -1, np.bool_)
    settled = np.tile(left <= 0, (len(cases), 1))
    settled[:, open_] = cases
    return settled


def whole_bounds(share: NDArray[np.float64], tolerance: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bounds of a measure that is counted: the tolerance, widened to the integers next to the share."""
    (low, high), (floor, ceiling) = bounds(share, tolerance), (_floor(share), _ceiling(share))
    return np.minimum(low, floor), np.maximum(high, ceiling)


def bounds(share: NDArray[np.float64], tolerance: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bounds of a measure: the share minus and plus the tolerance."""
    return _ceiling(share * (1 - tolerance)), _floor(share * (1 + tolerance))


def _ceiling(value: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return values rounded up to integers, except that a value close enough to an integer becomes that integer."""
    return np.ceil(value - np.maximum(_LEAST, value * _PRECISION)).astype(np.int64)


def _floor(value: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.floor(value + np.maximum(_LEAST, value * _PRECISION)).astype(np.int64)
