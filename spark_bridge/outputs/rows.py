"""The rows of a plan as Arrow batches: one for each partition whose replica list changes."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_bridge.model.block import BYTES, NOBODY, Block
from spark_bridge.outputs.reasons import Reasons

SCHEMA: Final = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("before", pa.list_(pa.int32()), nullable=False),
        pa.field("after", pa.list_(pa.int32()), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
    ]
)
"""`before` and `after` are broker ids, preferred leader first; `bytes` is the size of one replica."""


def plan_rows(block: Block, ids: NDArray[np.int32], reasons: Reasons) -> pa.RecordBatch:
    """Return the rows of a block's changed partitions, in the block's order; `ids` are the broker ids by index."""
    rows = np.flatnonzero(reasons.kind)
    names = pa.array(block.topics, pa.string())
    columns = [
        names.take(pa.array(block.topic[rows])),
        pa.array(block.partition[rows]),
        _lists(block.before[rows], ids),
        _lists(block.after[rows], ids),
        reasons.texts(ids).take(pa.array(rows)),
        pa.array(block.weights[rows, BYTES]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _lists(replicas: NDArray[np.int32], ids: NDArray[np.int32]) -> pa.ListArray:
    held = replicas != NOBODY
    offsets = np.concatenate([[0], np.cumsum(held.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids[replicas[held]]))
