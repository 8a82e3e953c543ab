"""The placement of the replicas of generated partitions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spark_bridge.generator.shapes import Placement, Shape
from spark_bridge.model.block import NOBODY


def place(shape: Shape, brokers: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw a replica list for each partition, with distinct brokers, and distinct racks if there are enough.

    Args:
        shape: The shape of the cluster.
        brokers: (P) the number of brokers, from the first, that may get the partition.
        rng: The source of random numbers.

    Returns:
        (P, replication factor) broker indices.
    """
    lists = np.full((len(brokers), shape.replication_factor), NOBODY, np.int32)
    for column in range(shape.replication_factor):
        open_rows = np.arange(len(lists))
        # Drawing brokers in any order never reaches a dead end, because racks differ by at most one broker.
        while len(open_rows):
            drawn = _drawn(shape.placement, brokers[open_rows], rng)
            fits = _fits(shape, lists[open_rows, :column], drawn, brokers[open_rows])
            lists[open_rows[fits], column] = drawn[fits]
            open_rows = open_rows[~fits]
    return lists


def _drawn(placement: Placement, brokers: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw one broker for each row, from the first `brokers` of the row."""
    part = rng.random(len(brokers))
    if placement is Placement.LINEAR:
        # The n-th is as likely as n of the n (n + 1) / 2 in all.
        index = (np.sqrt(1 + 4 * part * brokers * (brokers + 1.0)) - 1) / 2
    elif placement is Placement.EXPONENTIAL:
        index = np.sqrt(part) * brokers
    else:
        index = part * brokers
    drawn: NDArray[np.int32] = np.minimum(index.astype(np.int32), brokers - 1)
    return drawn


def _fits(
    shape: Shape, taken: NDArray[np.int32], drawn: NDArray[np.int32], brokers: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Return which rows can take the broker drawn for them in addition to those that they have."""
    fresh: NDArray[np.bool_] = ~(taken == drawn[:, None]).any(axis=1)
    if not shape.racks:
        return fresh
    racks = np.minimum(brokers, shape.racks)
    in_rack = (taken % shape.racks == (drawn % shape.racks)[:, None]).sum(axis=1)
    fresh &= in_rack < -(-shape.replication_factor // racks)
    return fresh
