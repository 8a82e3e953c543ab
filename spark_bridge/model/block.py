"""A block: a fixed part of all partitions, as arrays.

Partitions are distributed over blocks by a stable hash of their names, and the number of blocks depends only on the
number of partitions. So which partitions are planned together depends neither on the engine nor on how Spark partitions
its data. Within a block, partitions are ordered by topic and number.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Self, cast
from zlib import crc32

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

NOBODY = -1
"""Fills the end of a replica list that is shorter than the longest of its block."""

BLOCK_SIZE = 65_536
"""About the most partitions of a block; the hash decides."""

REPLICAS, BYTES, BYTES_IN = 0, 1, 2
"""The measures that follow a replica, by their column in `Block.weights`; leaders and bytes out follow the leader."""

MEASURES = ("replicas", "bytes", "bytes in")


def count_of_blocks(partitions: int) -> int:
    """Return the number of blocks for a number of partitions."""
    return max(1, -(-partitions // BLOCK_SIZE))


def name_hash(topic: str, partition: int) -> int:
    """Return the stable hash of a partition's name."""
    return crc32(f"{topic}-{partition}".encode())


@frozen(eq=False)
class Block:
    """A block of P partitions, with up to R replicas each before and W after.

    Attributes:
        topics: Names, in order.
        topic: (P) index in `topics`.
        partition: (P) partition number.
        before: (P, R) broker indices, preferred leader first, NOBODY after the last.
        after: (P, W) the same, as planned so far.
        weights: (P, 3) the weight of one replica in each measure: 1, bytes, bytes in per second.
        bytes_out: (P) bytes per second that consumers read from the leader.
        tie: (P) the stable hash that breaks ties.
        topic_ids: The id of each topic, None for one that is not known; empty if none is.
        least_isr: (P) min.insync.replicas, 0 if unknown; None if it is unknown of all.
    """

    topics: tuple[str, ...]
    topic: NDArray[np.int32]
    partition: NDArray[np.int32]
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    weights: NDArray[np.int64]
    bytes_out: NDArray[np.int64]
    tie: NDArray[np.uint32]
    topic_ids: tuple[str | None, ...] = ()
    least_isr: NDArray[np.int32] | None = None

    @classmethod
    def of(
        cls,
        names: Sequence[tuple[str, int]],
        replicas: Sequence[Sequence[int]],
        size: Sequence[int],
        bytes_in: Sequence[int],
        bytes_out: Sequence[int],
    ) -> Self:
        """Return a block of rows given in any order; `replicas` are non-empty lists of broker indices."""
        order = sorted(range(len(names)), key=names.__getitem__)
        topics = tuple(sorted({topic for topic, _ in names}))
        number = {topic: n for n, topic in enumerate(topics)}
        before = padded([replicas[i] for i in order])
        return cls(
            topics=topics,
            topic=np.array([number[names[i][0]] for i in order], np.int32),
            partition=np.array([names[i][1] for i in order], np.int32),
            before=before,
            after=before,
            weights=np.array([(1, size[i], bytes_in[i]) for i in order], np.int64).reshape(-1, 3),
            bytes_out=np.array([bytes_out[i] for i in order], np.int64),
            tie=np.array([name_hash(*names[i]) for i in order], np.uint32),
        )

    def __len__(self) -> int:
        return len(self.topic)

    def with_after(self, after: NDArray[np.int32]) -> Self:
        """Return the block with another plan."""
        return evolve(self, after=after)

    def only(self, rows: NDArray[np.bool_]) -> Self:
        """Return the block with some of its partitions (P), and with the names of all topics."""
        return evolve(
            self,
            topic=self.topic[rows],
            partition=self.partition[rows],
            before=self.before[rows],
            after=self.after[rows],
            weights=self.weights[rows],
            bytes_out=self.bytes_out[rows],
            tie=self.tie[rows],
            least_isr=None if self.least_isr is None else self.least_isr[rows],
        )

    def to_bytes(self) -> bytes:
        """Return the block as one binary value, which Spark carries between rounds."""
        return pickle.dumps(self, protocol=5)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` wrote in the same plan."""
        return cast("Self", pickle.loads(data))  # noqa: S301 (it is this program's own, from this same run)


def padded(lists: Sequence[Sequence[int]]) -> NDArray[np.int32]:
    """Return lists of broker indices as one array, NOBODY after the end of each."""
    width = max(map(len, lists), default=1)
    array = np.full((len(lists), width), NOBODY, np.int32)
    for row, replicas in enumerate(lists):
        array[row, : len(replicas)] = replicas
    return array
