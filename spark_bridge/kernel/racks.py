"""Racks: how many replicas of a partition one may hold, and which replicas must leave theirs.

No rack holds more than its limit of a partition. The limit is the smallest with which all replicas find a place among
the brokers that receive: ceil(RF / racks) if each rack has enough of them. What other brokers keep takes places of
their racks and adds none. So there is always a plan: a rack has room for as many replicas as it was counted for. A
broker without a rack counts as its own rack, whose limit follows from the rule that no broker holds two replicas of a
partition.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_bridge.model.block import NOBODY
from spark_bridge.model.goal import MOST_REPLICAS


def units(rack: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return (B) rack numbers in which each broker without a rack has its own, given negative numbers for these."""
    alone = rack < 0
    return np.where(alone, int(rack.max(initial=NOBODY)) + np.cumsum(alone), rack).astype(np.intp)


def rack_limits(rack: NDArray[np.int32], receives: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return, by replication factor, how many replicas of a partition a rack may hold.

    Args:
        rack: (B) rack numbers, negative without a rack.
        receives: (B) the brokers that may receive replicas.

    Returns:
        (MOST_REPLICAS + 1) limits; the factor itself if there are too few brokers for any limit.
    """
    sizes = np.bincount(rack[receives & (rack >= 0)])
    alone = int(np.count_nonzero(receives & (rack < 0)))
    limits = np.arange(MOST_REPLICAS + 1, dtype=np.int32)
    for factor in range(1, MOST_REPLICAS + 1):
        for limit in range(1, factor + 1):
            if alone + np.minimum(sizes, limit).sum() >= factor:
                limits[factor] = limit
                break
    return limits


def surplus(
    after: NDArray[np.int32], rack: NDArray[np.int32], limit: NDArray[np.int32], fullness: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which replicas must leave their rack.

    Of a rack's replicas, those on the emptiest brokers stay; of equally full ones, those earlier in the list.

    Args:
        after: (P, W) broker indices; NOBODY for empty places.
        rack: (B) rack numbers, negative without a rack.
        limit: (P) how many replicas of the partition one rack may hold.
        fullness: (B) the load of each broker as a part of its share.

    Returns:
        (P, W) True for replicas above the limit of their racks.
    """
    racks = np.where(after == NOBODY, NOBODY, rack[after])
    full = np.where(after == NOBODY, np.inf, fullness[after])
    before_it = np.zeros(after.shape, np.int32)
    for i in range(after.shape[1]):
        for j in range(after.shape[1]):
            if i != j:
                stays = (full[:, j] < full[:, i]) | ((full[:, j] == full[:, i]) & (j < i))
                before_it[:, i] += (racks[:, i] == racks[:, j]) & stays
    return (racks >= 0) & (before_it >= limit[:, None])
