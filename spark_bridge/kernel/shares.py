"""What is every broker's share of the cluster, and between which bounds its load may end.

A share is a part of the total in proportion to capacity. Where the rules keep a broker or a rack from holding that
much, it is what they can hold, and the others share the rest: the nearest to even that is feasible. Nobody holds more
than one replica of a partition, and a rack no more than its limit of each (see `racks`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
