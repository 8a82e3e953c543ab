"""Blocks of what several brokers are told together, and which of two states of one partition is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from attrs import define, frozen

from transport.messages import LeaderAndIsrPartition, PartitionState, StopReplicaPartition
from transport.messages.shared import SharedRows
from transport.metadata import LEADER_DURING_DELETE, OfPartition

V = TypeVar("V")

Key = tuple[str, int]
"""Topic name and partition number."""

MAX_PARTITIONS: Final = 10_000
"""The limit of one request. With the longest names and a hundred replicas each, this fills a fifth of a frame."""


@define(eq=False, slots=False)
class Block(Generic[V]):
    """Entries that are sent together, at most one for each key. Never changes."""

    rows: SharedRows[V]
    _key: Callable[[V], Key]
    _topic: Callable[[V], str]

    @cached_property
    def entries(self) -> dict[Key, V]:
        """The entries by their keys, not to be changed."""
        key = self._key
        return {key(row): row for row in self.rows}

    @cached_property
    def topics(self) -> frozenset[str]:
        """The names of the topics in this block."""
        return frozenset(map(self._topic, self.rows))

    def shares_topic(self, other: Block[Any]) -> bool:
        """Return whether both have entries of one topic."""
        if self.rows.are_sorted and other.rows.are_sorted:
            # Mostly the ends tell that the blocks are apart, without a look at each row.
            (first, last), (others_first, others_last) = self.ends, other.ends
            if last < others_first or others_last < first:
                return False
        return not self.topics.isdisjoint(other.topics)

    @cached_property
    def ends(self) -> tuple[str, str]:
        """The topics of the first and the last row."""
        return self._topic(self.rows[0]), self._topic(self.rows[-1])

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Key]:
        return iter(self.entries)

    def __contains__(self, key: Key) -> bool:
        # Most blocks have nothing of a topic, which is known without the keys of each.
        return key[0] in self.topics and key in self.entries


@frozen
class Orders:
    """Orders for a broker to lead and follow: blocks that have no partition in common."""

    blocks: tuple[Block[LeaderAndIsrPartition], ...]

    @classmethod
    def of(cls, lists: Iterable[SharedRows[LeaderAndIsrPartition]]) -> Orders:
        """Make blocks of lists that are no longer than a request."""
        return cls(tuple([Block(rows, key_of_order, _topic_of_order) for rows in lists]))


@frozen
class Stops:
    """Orders for a broker to stop replicas: blocks that have no partition in common."""

    blocks: tuple[Block[StopReplicaPartition], ...]

    @classmethod
    def of(cls, lists: Iterable[SharedRows[StopReplicaPartition]]) -> Stops:
        """Make blocks of lists that are no longer than a request."""
        return cls(tuple([Block(rows, key_of_stop, topic_of) for rows in lists]))


@frozen
class States:
    """Partition states for the metadata of several brokers: blocks that have no partition in common."""

    blocks: tuple[Block[PartitionState], ...]

    @classmethod
    def of(cls, partitions: Sequence[PartitionState]) -> list[States]:
        """Return the newest states among those given in the order of their arrival.

        A deletion and the state of the topic that was recreated under its name are told one after the other.
        """
        if are_rising(partitions):
            return [cls._of(partitions, are_sorted=True)]
        newest = {key_of(state): state for state in partitions}
        if len(newest) == len(partitions):
            return [cls._of(partitions)]
        told, newest = [], {}
        for state in partitions:
            key = key_of(state)
            waiting = newest.get(key)
            if waiting is not None and is_recreation(waiting, state):
                told.append(cls._of(newest.values()))
                newest, waiting = {}, None
            newest[key] = state if waiting is None else newer_state(waiting, state)
        return [*told, cls._of(newest.values())]

    @classmethod
    def _of(cls, states: Iterable[PartitionState], *, are_sorted: bool = False) -> States:
        rows = tuple(states)
        cuts = [rows[start : start + MAX_PARTITIONS] for start in range(0, len(rows), MAX_PARTITIONS)]
        return cls(tuple([Block(SharedRows.of(cut, are_sorted=are_sorted), key_of, topic_of) for cut in cuts]))


key_of: Final[Callable[[OfPartition], Key]] = attrgetter("topic", "partition")
"""Returns the key of a row about a partition."""

topic_of: Final[Callable[[OfPartition], str]] = attrgetter("topic")
"""Returns the topic of a state, or of an order to stop."""

state_of: Final[Callable[[LeaderAndIsrPartition], PartitionState]] = attrgetter("state")
"""Returns the state in an order to lead or follow."""

key_of_order: Final[Callable[[LeaderAndIsrPartition], Key]] = attrgetter("state.topic", "state.partition")
"""Returns the key of an order to lead or follow."""

_topic_of_order: Final[Callable[[LeaderAndIsrPartition], str]] = attrgetter("state.topic")


key_of_stop: Final[Callable[[StopReplicaPartition], Key]] = attrgetter("topic", "partition")
"""Returns the key of an order to stop a replica."""


def are_rising(rows: Iterable[OfPartition]) -> bool:
    """Return whether the key of each row is greater than that of the one before, so that none occurs twice.

    Those of many partitions almost always are, and to see this takes less than a set of them.
    """
    topic, number = "", -1
    for row in rows:
        before, topic = topic, row.topic
        # A topic's partitions mostly follow one another, with one object as its name.
        if topic is before or topic == before:
            if row.partition <= number:
                return False
        elif topic < before:
            return False
        number = row.partition
    return True


def is_recreation(waiting: PartitionState, state: PartitionState) -> bool:
    """Return whether a state is of a topic recreated under the name of one whose deletion waits."""
    return waiting.leader == LEADER_DURING_DELETE and waiting.topic_id != state.topic_id


def newer_state(waiting: PartitionState, state: PartitionState) -> PartitionState:
    """Return what replaces a state that waits when a later one of its partition comes."""
    return _newer(waiting, state) if waiting.topic_id == state.topic_id else state


def newer_order(waiting: LeaderAndIsrPartition, order: LeaderAndIsrPartition) -> LeaderAndIsrPartition:
    """Return what replaces an order that waits when a later one for its partition comes."""
    if waiting.state.topic_id != order.state.topic_id:
        return order
    return LeaderAndIsrPartition(_newer(waiting.state, order.state), order.is_new or waiting.is_new)


def _newer(waiting: PartitionState, state: PartitionState) -> PartitionState:
    """Return the newer of two states of one topic id, `state` being the later arrival.

    With equal epochs the later arrival wins, because the replica set can change without a new epoch. So does a state
    that says that the topic is being deleted: its epochs are those of no leader and cannot be compared.
    """
    is_deletion = state.leader == LEADER_DURING_DELETE
    return state if is_deletion or authority(waiting) <= authority(state) else waiting


def authority(state: PartitionState) -> tuple[int, int, int]:
    """Return the sort key that orders the states of one partition: the newer state has the greater one."""
    return state.controller_epoch, state.leader_epoch, state.partition_epoch
