"""A generated cluster: its brokers at once, its partitions block by block.

Properties of topics are drawn from the seed, those of partitions from the seed and the number of their block. So each
block can be made alone, by any process, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final
from zlib import crc32

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from spark_bridge.generator.shapes import ClusterShape, Placement
from spark_bridge.model.block import NOBODY, Block, count_of_blocks
from spark_bridge.model.brokers import Broker, Brokers

_SLICE: Final = 1_000_000
"""The number of partitions that are hashed at once, which limits the memory."""

_DISK_OF_MEAN: Final = 2.4
"""The size of a broker's disk in relation to the mean load, as in Cruise Control's random clusters."""

_RETENTION_DAYS: Final = (1, 3, 7, 14)
_MOST_READERS: Final = 4
_DAY: Final = 86_400

_OF_TOPICS, _OF_BLOCKS = 1, 2
"""Separate the random numbers that are drawn from one seed."""


def name_hashes(topics: NDArray[np.uint32], partition: NDArray[np.int32]) -> NDArray[np.uint32]:
    """Return `name_hash` of partitions, given the hashes of their topics' names with the dash behind them."""
    numbers = map(b"%d".__mod__, partition.tolist())
    return np.fromiter(map(crc32, numbers, topics.tolist()), np.uint32, len(partition))


@frozen(slots=False)
class GeneratedCluster:
    """The cluster of a shape."""

    shape: ClusterShape

    @property
    def count_of_blocks(self) -> int:
        """Return the number of blocks."""
        return count_of_blocks(self.shape.partitions)

    @cached_property
    def brokers(self) -> Brokers:
        """Return all brokers; the new ones have the highest ids."""
        shape = self.shape
        disk = int(_DISK_OF_MEAN * shape.mean_bytes * shape.partitions * shape.replication_factor / shape.brokers)
        digits = len(str(shape.racks))
        racks = [f"rack-{n + 1:0{digits}}" for n in range(shape.racks)]
        ids = range(1, shape.brokers + shape.new_brokers + 1)
        return Brokers.of(
            Broker(id_, racks[(id_ - 1) % len(racks)] if racks else None, disk=disk or None) for id_ in ids
        )

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks, one after another."""
        return map(self.block, range(self.count_of_blocks))

    def block(self, number: int) -> Block:
        """Return one block."""
        rng = np.random.default_rng([self.shape.seed, _OF_BLOCKS, number])
        all_topics, partition = self._named(self._members(number))
        present, topic = np.unique(all_topics, return_inverse=True)
        before = _placed(self.shape, self._brokers_then[all_topics], rng)
        size = (rng.exponential(size=len(topic)) * self._topic_bytes[all_topics]).astype(np.int64)
        size[self._is_empty[all_topics]] = 0
        bytes_in = (size / self._retention[all_topics]).astype(np.int64)
        return Block(
            topics=tuple(self.topics[n] for n in present),
            topic=topic.astype(np.int32),
            partition=partition,
            before=before,
            after=before,
            weights=np.stack([np.ones_like(size), size, bytes_in], axis=1),
            bytes_out=bytes_in * self._readers[all_topics],
            tie=name_hashes(self._topic_hashes[all_topics], partition),
        )

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """Return the topics' names, in the order of their age and of their names."""
        digits = len(str(self.shape.topics - 1))
        return tuple(f"topic-{n:0{digits}}" for n in range(self.shape.topics))

    @cached_property
    def _topic_hashes(self) -> NDArray[np.uint32]:
        return np.array([crc32(f"{topic}-".encode()) for topic in self.topics], np.uint32)

    def _drawn(self, what: int) -> np.random.Generator:
        """Return the random numbers for one property of the topics, which are independent of the others."""
        return np.random.default_rng([self.shape.seed, _OF_TOPICS, what])

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        """Return the index of each topic's first partition among all partitions, and the total at the end."""
        shape = self.shape
        weight = np.cumsum(self._drawn(0).exponential(size=shape.topics))
        more = np.floor(weight / weight[-1] * (shape.partitions - shape.topics)).astype(np.int64)
        return np.concatenate([[0], more + np.arange(1, shape.topics + 1)])

    @cached_property
    def _topic_bytes(self) -> NDArray[np.float64]:
        """Return the mean size of each topic's partitions; over all partitions the mean is the shape's."""
        popularity = self._drawn(1).exponential(size=self.shape.topics)
        mean = np.average(popularity, weights=np.diff(self._first))
        return popularity * self.shape.mean_bytes / mean

    @cached_property
    def _retention(self) -> NDArray[np.int64]:
        """Return the retention time of each topic in seconds."""
        return self._drawn(2).choice(_RETENTION_DAYS, self.shape.topics) * _DAY

    @cached_property
    def _readers(self) -> NDArray[np.int64]:
        """Return the number of consumers that read each topic."""
        return self._drawn(3).integers(0, _MOST_READERS, self.shape.topics, endpoint=True)

    @cached_property
    def _is_empty(self) -> NDArray[np.bool_]:
        """Return which topics are empty."""
        drawn: NDArray[np.bool_] = self._drawn(4).random(self.shape.topics) < self.shape.empty
        return drawn

    @cached_property
    def _brokers_then(self) -> NDArray[np.int32]:
        """Return the number of brokers that existed when each topic was created."""
        shape = self.shape
        age = np.arange(shape.topics) / shape.topics
        came = np.floor(age * (shape.brokers - shape.first_brokers + 1)).astype(np.int32)
        return came + np.int32(shape.first_brokers)

    @cached_property
    def _by_block(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the partitions in the order of their blocks, and where each block begins and ends."""
        count = self.count_of_blocks
        block = np.empty(self.shape.partitions, np.uint16 if count <= np.iinfo(np.uint16).max else np.uint32)
        for start in range(0, self.shape.partitions, _SLICE):
            members = np.arange(start, min(start + _SLICE, self.shape.partitions))
            topic, partition = self._named(members)
            block[members] = name_hashes(self._topic_hashes[topic], partition) % np.uint32(count)
        return np.argsort(block, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(block, minlength=count))])

    def _members(self, number: int) -> NDArray[np.int64]:
        """Return the partitions of a block, as indices among all partitions."""
        order, bounds = self._by_block
        return order[bounds[number] : bounds[number + 1]]

    def _named(self, members: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the topics and numbers of partitions, given as indices among all partitions."""
        topic = np.searchsorted(self._first, members, side="right") - 1
        return topic, (members - self._first[topic]).astype(np.int32)


def _placed(shape: ClusterShape, brokers: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
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
    shape: ClusterShape, taken: NDArray[np.int32], drawn: NDArray[np.int32], brokers: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Return which rows can take the broker drawn for them in addition to those that they have."""
    fresh: NDArray[np.bool_] = ~(taken == drawn[:, None]).any(axis=1)
    if not shape.racks:
        return fresh
    racks = np.minimum(brokers, shape.racks)
    in_rack = (taken % shape.racks == (drawn % shape.racks)[:, None]).sum(axis=1)
    fresh &= in_rack < -(-shape.replication_factor // racks)
    return fresh
