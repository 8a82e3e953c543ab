"""Flows: the replicas and bytes that move between each pair of brokers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.model.block import BYTES, NOBODY, Block
from spark_bridge.model.lists import shared

FLOWS: Final = pa.schema([(name, pa.int64()) for name in ("source", "destination", "replicas", "bytes")])

FlowsOf = Callable[[Block], pa.RecordBatch]


@frozen(eq=False)
class Flows:
    """Sums a block's moves by source and destination; `ids` are the broker ids by index.

    The first broker that a partition leaves is paired with the first that it is added to, and so on. Replicas added by
    a higher replication factor come from the preferred leader.
    """

    ids: NDArray[np.int32]

    def __call__(self, block: Block) -> pa.RecordBatch:
        """Return rows of `FLOWS`, each pair once."""
        comes = _missing(block.after, block.before)
        leaves = _missing(block.before, block.after)
        source, target, row = [], [], []
        for place in range(comes.shape[1]):
            rows = np.flatnonzero(comes[:, place] != NOBODY)
            gone = leaves[rows, place] if place < leaves.shape[1] else np.full(len(rows), NOBODY, np.int32)
            source.append(np.where(gone == NOBODY, block.before[rows, 0], gone))
            target.append(comes[rows, place])
            row.append(rows)
        pair = np.concatenate(source).astype(np.int64) * len(self.ids) + np.concatenate(target)
        pairs, which, count = np.unique(pair, return_inverse=True, return_counts=True)
        size = np.zeros(len(pairs), np.int64)
        np.add.at(size, which, block.weights[np.concatenate(row), BYTES])
        ends = np.divmod(pairs, len(self.ids))
        return pa.RecordBatch.from_arrays(
            [pa.array(column.astype(np.int64)) for column in (self.ids[ends[0]], self.ids[ends[1]], count, size)],
            schema=FLOWS,
        )


def _missing(lists: NDArray[np.int32], others: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the members of each list that are not in the other list, moved to the front."""
    lacks = (lists != NOBODY) & ~shared(lists, others)
    order = np.argsort(~lacks, axis=1, kind="stable")
    moved: NDArray[np.int32] = np.take_along_axis(np.where(lacks, lists, NOBODY), order, axis=1)
    return moved
