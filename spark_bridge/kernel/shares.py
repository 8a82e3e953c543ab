"""What is every broker's share of the cluster, and between which bounds its load may end.

A share is a part of the total in proportion to capacity. Where the rules keep a broker or a rack from holding that
much, it is what they can hold, and the others share the rest: the nearest to even that is feasible. Nobody holds more
than one replica of a partition, and a rack no more than its limit of each (see `racks`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

_TIGHT = 1e-9
"""By which part sums of shares may be above what there is room for, as floats are."""

_HALVINGS = 100
"""Of the interval in which the water level lies: far below what a float can tell apart."""

_LEAST, _PRECISION = 1e-6, 1e-13
"""How far a bound may be off by the rounding of floats: at least so much, and so much for each of it."""


def shares(
    total: float,
    capacity: NDArray[np.float64],
    rack: NDArray[np.int32],
    most_of_broker: NDArray[np.float64] | float,
    most_of_rack: NDArray[np.float64],
    least: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Divide a total among brokers in proportion to capacity, as far as the rules permit.

    Args:
        total: What there is of the measure.
        capacity: (B) capacities; 0 for brokers that get no share.
        rack: (B) rack numbers, negative without a rack.
        most_of_broker: What one broker can hold at most, or (B) each.
        most_of_rack: By rack number, what it can hold at most.
        least: (B) what each broker keeps in any case; nothing by default.

    Returns:
        (B) shares. They sum to the total, or to less where the rules leave no room for it.
    """
    least = np.zeros(len(capacity)) if least is None else np.where(capacity > 0, least, 0.0)
    most = np.broadcast_to(most_of_broker, len(capacity)).astype(np.float64)
    for number, room in enumerate(most_of_rack):
        here = rack == number
        most[here] = _filled(room, capacity[here], np.maximum(most, least)[here], least[here])
    return _filled(total, capacity, np.maximum(most, least), least)


@frozen(eq=False)
class Rooms:
    """The room of racks together, for partitions that are in none of them more often than its limit.

    Attributes:
        free: (F + 1) the weights of one replica of each partition, summed by replication factor.
        limits: (F + 1) how many replicas of a partition a rack may hold, by factor.
        sizes: (U) how many brokers each rack has; who has no rack is one of its own.
        beside: (U) what racks hold beside that.
    """

    free: NDArray[np.int64]
    limits: NDArray[np.int32]
    sizes: NDArray[np.int64]
    beside: NDArray[np.float64]

    def of(self, racks: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return what the first of some racks can hold, the first two together, and so on."""
        held = np.cumsum(np.minimum(self.limits[:, None], self.sizes[racks][None, :]), axis=1)
        most = np.minimum(held, np.arange(len(self.free))[:, None])
        return np.asarray(self.free.astype(np.float64) @ most + np.cumsum(self.beside[racks]))


def joint_shares(
    divide: Callable[[float, NDArray[np.float64]], NDArray[np.float64]],
    total: float,
    capacity: NDArray[np.float64],
    unit: NDArray[np.intp],
    rooms: Rooms,
) -> NDArray[np.float64]:
    """Divide a total so that no racks hold more together than they can; those that would have what they can.

    Two large brokers without racks hold at most two replicas of a partition, for example, and nothing of one that the
    other has, where it has but one.

    Args:
        divide: Divides a total among brokers with (B) capacities, where each broker and rack is bounded alone.
        total: What there is of the measure.
        capacity: (B) capacities; 0 for brokers that get no share.
        unit: (B) the number of every broker's rack in `rooms`.
        rooms: What racks can hold.
    """
    share, full = np.zeros(len(capacity)), np.zeros(0, np.intp)
    left, open_ = total, capacity > 0
    while open_.any():
        found = divide(left, np.where(open_, capacity, 0.0))
        of_unit = np.bincount(unit, np.where(open_, found, 0.0), len(rooms.sizes))
        wanting = np.unique(unit[open_])
        order = wanting[np.argsort(-of_unit[wanting], kind="stable")]
        sums = np.cumsum(of_unit[order])
        room = rooms.of(np.concatenate([full, order]))[len(full) :] - (rooms.of(full)[-1] if len(full) else 0.0)
        if not (sums > room * (1 + _TIGHT) + _LEAST).any():
            return np.where(open_, found, share)
        tightest = int((room / np.maximum(sums, _LEAST)).argmin())
        here = open_ & np.isin(unit, order[: tightest + 1])
        share = np.where(here, divide(float(room[tightest]), np.where(here, capacity, 0.0)), share)
        full, left, open_ = np.concatenate([full, order[: tightest + 1]]), left - float(room[tightest]), open_ & ~here
    return share


def _filled(
    total: float, capacity: NDArray[np.float64], most: NDArray[np.float64], least: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Divide a total in proportion to capacity, nobody getting more than its most, nor less than its least."""
    low, high = 0.0, float((most[capacity > 0] / capacity[capacity > 0]).max(initial=0.0))
    for _ in range(_HALVINGS):
        level = (low + high) / 2
        if np.clip(level * capacity, least, most).sum() < total:
            low = level
        else:
            high = level
    return np.clip(high * capacity, least, most)


def whole_bounds(share: NDArray[np.float64], tolerance: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bounds of something counted: the tolerance, widened to the whole numbers next to the share."""
    (low, high), (floor, ceiling) = bounds(share, tolerance), (_floor(share), _ceiling(share))
    return np.minimum(low, floor), np.maximum(high, ceiling)


def bounds(share: NDArray[np.float64], tolerance: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bounds of a measure: the share, less and plus the tolerance."""
    return _ceiling(share * (1 - tolerance)), _floor(share * (1 + tolerance))


def _ceiling(value: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the least whole numbers that are not less; what is a whole number but for rounding stays one."""
    return np.ceil(value - np.maximum(_LEAST, value * _PRECISION)).astype(np.int64)


def _floor(value: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.floor(value + np.maximum(_LEAST, value * _PRECISION)).astype(np.int64)
