"""Racks: how many replicas of a partition one may hold, and which replicas must leave theirs.

There are two limits, and a broker without a rack counts as its own rack, for which both follow from the rule that no
broker holds two replicas of a partition.

1. No rack holds more replicas than the smallest number with which all of a partition find a place among the brokers
   that receive (`rack_limits`): ceil(RF / racks) if each rack has enough of them. Replicas above this limit must leave
   their rack. There is always a plan: a rack has room for as many replicas as it was counted for.
2. Brokers that do not receive may keep replicas: excluded ones, and under some goals dead and draining ones. A rack
   can hold those besides what its receivers can hold, so the limit of such a partition may be smaller
   (`limits_beside`). A replica that moves goes to a rack that then has no more than this limit. Nothing moves because
   of it: a rack that has more, within the first limit, keeps them. The rounds drop this limit where disks or evening
   out have no use for it (see `plan_moves`).

The second limit suffices as well. Suppose that fewer than all replicas of a partition have a place. The racks can hold
all of them without exceeding the limit, and what a rack has above it leaves fewer for the others. So some rack is below
its limit and has a receiver without a replica: replicas leave brokers that do not receive only while their rack has
more than the limit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_bridge.model.block import NOBODY
from spark_bridge.model.goal import MOST_REPLICAS
from spark_bridge.model.lists import any_of, counts, nth


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


def limits_beside(
    lists: NDArray[np.int32],
    factors: NDArray[np.int64],
    rack: NDArray[np.int32],
    receives: NDArray[np.bool_],
    rests: NDArray[np.bool_],
    limits: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Return (P) how many replicas of each partition a rack may hold, beside what brokers at rest keep of it.

    Args:
        lists: (P, W) the lists before the plan, as broker indices; NOBODY for empty places.
        factors: (P) the wanted replication factors, at most MOST_REPLICAS.
        rack: (B) rack numbers, negative without a rack.
        receives: (B) the brokers that may receive replicas.
        rests: (B) the brokers that neither receive nor lose replicas.
        limits: The limits by replication factor for partitions without replicas at rest (see `rack_limits`).
    """
    limit = limits[factors]
    if not rests.any() or not (rack >= 0).any():
        return limit
    there = (lists != NOBODY) & rests[lists]
    rows = np.flatnonzero(any_of(there))
    kept, wanted = there[rows], factors[rows]
    unit = units(rack)
    receivers = np.bincount(unit[receives], minlength=int(unit.max()) + 1)
    # The receivers of a rack take its first places, so a kept replica adds a place to a limit that is above these.
    racks = np.where(kept, unit[lists[rows]], NOBODY).astype(np.int32)
    added_from = receivers[racks] + nth(racks)
    found = limit[rows]
    # From the largest limit downwards: a row ends with the smallest that suffices.
    for tried in range(int(found.max(initial=1)) - 1, 0, -1):
        places = int(np.minimum(receivers, tried).sum()) + counts(kept & (added_from <= tried))
        found = np.where((places >= wanted) & (tried < found), tried, found).astype(np.int32)
    limit[rows] = found
    return limit


def surplus(
    after: NDArray[np.int32],
    rack: NDArray[np.int32],
    limit: NDArray[np.int32],
    fullness: NDArray[np.float64],
    keeps: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Return which replicas must leave their rack.

    Of a rack's replicas, those of brokers that keep all stay, even if these alone are too many. Then those on the
    emptiest brokers stay; of equally full ones, those earlier in the list.

    Args:
        after: (P, W) broker indices; NOBODY for empty places.
        rack: (B) rack numbers, negative without a rack.
        limit: (P) how many replicas of the partition one rack may hold.
        fullness: (B) the load of each broker as a part of its share.
        keeps: (B) the brokers that keep what they have.

    Returns:
        (P, W) True for replicas above the limit of their racks.
    """
    racks = np.where(after == NOBODY, NOBODY, rack[after])
    full = np.where(after == NOBODY, np.inf, np.where(keeps, -np.inf, fullness)[after])
    before_it = np.zeros(after.shape, np.int32)
    for i in range(after.shape[1]):
        for j in range(after.shape[1]):
            if i != j:
                stays = (full[:, j] < full[:, i]) | ((full[:, j] == full[:, i]) & (j < i))
                before_it[:, i] += (racks[:, i] == racks[:, j]) & stays
    return (racks >= 0) & (before_it >= limit[:, None]) & ~keeps[after]
