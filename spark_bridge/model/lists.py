"""Replica lists of many partitions, compared column by column: row by row, lists of three take ten times as long."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_bridge.model.block import NOBODY


def lengths(lists: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return (P) how many replicas (P, W) lists have."""
    return counts(lists != NOBODY)


def counts(flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return (P) how many of the (P, W) flags of each row are set."""
    total = np.zeros(len(flags), np.int64)
    for column in range(flags.shape[1]):
        total += flags[:, column]
    return total


def any_of(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return (P) whether any of the (P, W) flags of each row is set."""
    found = np.zeros(len(flags), np.bool_)
    for column in range(flags.shape[1]):
        found |= flags[:, column]
    return found


def shared(lists: NDArray[np.int32], others: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return (P, W) which members of lists are in the (P, R) other lists of their partitions; NOBODY is a member."""
    columns = np.ascontiguousarray(lists.T)
    found = np.zeros(columns.shape, np.bool_)
    for other in np.ascontiguousarray(others.T):
        found |= columns == other
    return np.ascontiguousarray(found.T)
