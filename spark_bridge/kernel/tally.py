"""The reports of blocks to the driver: broker-sized sums of integers, which do not depend on the order of blocks."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spark_bridge.model.block import BYTES, MEASURES, NOBODY, Block
from spark_bridge.model.lists import counts, shared

Tally = dict[str, NDArray[np.int64]]


class BlockStep(Protocol):
    """The work of a round on a block, given its number: a new block, and a report to the driver."""

    def __call__(self, number: int, block: Block, /) -> tuple[Block, Tally]:
        """Perform the step in a block."""


class Query(Protocol):
    """A question to a block, which stays as it is."""

    def __call__(self, number: int, block: Block, /) -> Tally:
        """Return the tally of a block."""


def loads(block: Block, brokers: int, *, before: bool = False) -> NDArray[np.int64]:
    """Return (B, 3) the loads of a block's replicas by broker, as planned or before the plan."""
    lists = block.before if before else block.after
    return np.stack([_weighed(lists, block.weights[:, m], brokers) for m in range(len(MEASURES))], axis=1)


def all_loads(block: Block, brokers: int, *, before: bool) -> NDArray[np.int64]:
    """Return (B, 5) replicas, leaders, bytes, bytes in and bytes out of each broker."""
    lists = block.before if before else block.after
    weighed = loads(block, brokers, before=before)
    leader = lists[:, 0]
    led = sums(leader, np.ones(len(block), np.int64), brokers)
    return np.stack([weighed[:, 0], led, weighed[:, 1], weighed[:, 2], sums(leader, block.bytes_out, brokers)], axis=1)


def _weighed(lists: NDArray[np.int32], weight: NDArray[np.int64], brokers: int) -> NDArray[np.int64]:
    """Return (B) the weights of replicas (P, W) by broker, given the weight of one replica of each partition."""
    # NOBODY, -1, counts in the last element.
    total = np.zeros(brokers + 1, np.int64)
    for column in range(lists.shape[1]):
        np.add.at(total, lists[:, column], weight)
    return total[:brokers]


def sums(index: NDArray[np.int32], values: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Return the sums of integers by index, exactly; `np.bincount` with weights is not exact beyond 2**53."""
    total = np.zeros(length, np.int64)
    np.add.at(total, index, values)
    return total


def moved(block: Block) -> NDArray[np.bool_]:
    """Return (P, W) which planned replicas are on a broker that had none of the partition before."""
    new: NDArray[np.bool_] = block.after != NOBODY
    return new & ~shared(block.after, block.before)


def gained(block: Block, brokers: int) -> NDArray[np.int64]:
    """Return (B) the bytes of the block's new replicas on each broker."""
    new = moved(block)
    row = np.broadcast_to(np.arange(len(block))[:, None], new.shape)[new]
    return sums(block.after[new], block.weights[row, BYTES], brokers)


def cost(block: Block, price: int = BYTES) -> int:
    """Return how much the plan moves, in bytes or another measure."""
    return int((counts(moved(block)) * block.weights[:, price]).sum())


def add(total: Tally, part: Tally) -> Tally:
    """Return two tallies combined: sums by name, the greater numbers for `max_...`, and all rows for `all_...`.

    The order in which rows are joined depends on the engine.
    """
    both = {**total, **part}
    for name in sorted(total.keys() & part.keys()):
        if name.startswith("all_"):
            both[name] = np.concatenate([total[name], part[name]])
        else:
            both[name] = (np.maximum if name.startswith("max_") else np.add)(total[name], part[name])
    return both
