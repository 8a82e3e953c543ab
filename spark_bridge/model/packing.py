"""Packing of rows of partitions into blocks."""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_bridge.model.block import NOBODY, Block, count_of_blocks


def blocks_of(partitions: pa.Table, ids: NDArray[np.int32]) -> Iterator[Block]:
    """Distribute partitions over blocks, and yield these in order of number.

    Args:
        partitions: Rows of the canonical columns: topic, partition, topic_id, replicas, bytes, bytes_in, bytes_out, and
            min_insync_replicas if it is known of any.
        ids: The ids of all brokers, in order.
    """
    hashes = hashes_of(partitions)
    number = hashes % count_of_blocks(len(partitions))
    for block in range(count_of_blocks(len(partitions))):
        rows = np.flatnonzero(number == block)
        yield pack(partitions.take(pa.array(rows)), ids, hashes[rows])


def pack(partitions: pa.Table, ids: NDArray[np.int32], hashes: NDArray[np.uint32] | None = None) -> Block:
    """Pack rows, in any order, into one block."""
    hashes = hashes_of(partitions) if hashes is None else hashes
    order = pc.sort_indices(partitions, sort_keys=[("topic", "ascending"), ("partition", "ascending")])
    partitions = partitions.take(order).combine_chunks()
    names = pc.unique(partitions["topic"])
    replicas = partitions["replicas"].combine_chunks()
    lengths = pc.list_value_length(replicas).to_numpy(zero_copy_only=False).astype(np.int64)
    before = np.full((len(lengths), int(lengths.max(initial=1))), NOBODY, np.int32)
    before[np.arange(before.shape[1]) < lengths[:, None]] = np.searchsorted(ids, replicas.flatten().to_numpy())
    loads = [_known(partitions, name) for name in ("bytes", "bytes_in", "bytes_out")]
    return Block(
        topics=tuple(names.to_pylist()),
        topic_ids=_ids_of(names, partitions),
        topic=pc.index_in(partitions["topic"], names).to_numpy().astype(np.int32),
        partition=partitions["partition"].to_numpy().astype(np.int32),
        before=before,
        after=before,
        weights=np.stack([np.ones(len(lengths), np.int64), *loads[:2]], axis=1),
        bytes_out=loads[2],
        tie=hashes[order.to_numpy()],
        least_isr=_least_isr(partitions),
    )


def _ids_of(names: pa.Array, partitions: pa.Table) -> tuple[str | None, ...]:
    """Return the id of each topic, that of its first row; none if no id is known."""
    if "topic_id" not in partitions.column_names or partitions["topic_id"].null_count == len(partitions):
        return ()
    first = pc.index_in(names, partitions["topic"])
    return tuple(partitions["topic_id"].take(first).to_pylist())


def _least_isr(partitions: pa.Table) -> NDArray[np.int32] | None:
    if "min_insync_replicas" not in partitions.column_names:
        return None
    column = partitions["min_insync_replicas"]
    return None if column.null_count == len(column) else np.asarray(pc.fill_null(column, 0).to_numpy(), np.int32)


def hashes_of(partitions: pa.Table) -> NDArray[np.uint32]:
    """Return the stable hash of each row's name, like `name_hash`, but encode each topic and each number only once."""
    begun = {topic: crc32(f"{topic}-".encode()) for topic in pc.unique(partitions["topic"]).to_pylist()}
    ends = {number: str(number).encode() for number in pc.unique(partitions["partition"]).to_pylist()}
    starts = map(begun.__getitem__, partitions["topic"].to_pylist())
    numbers = map(ends.__getitem__, partitions["partition"].to_pylist())
    return np.fromiter(map(crc32, numbers, starts), np.uint32, len(partitions))


def _known(partitions: pa.Table, column: str) -> NDArray[np.int64]:
    return np.asarray(pc.fill_null(partitions[column], 0).to_numpy(), np.int64)
