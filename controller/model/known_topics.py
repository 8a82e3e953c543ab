"""Topics as a controller knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final

from attrs import frozen

from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store.formats import TopicZnode

UNASSIGNED: Final = ReplicaAssignment(())
"""The assignment of a partition that is not known."""


@frozen
class KnownTopic:
    """A topic's znode as last read or written, and the dataVersion that the next write must expect."""

    znode: TopicZnode
    version: int


def assignments_of(topics: Mapping[str, KnownTopic], tps: Iterable[TopicPartition]) -> list[ReplicaAssignment]:
    """Return the assignments of partitions, as `assignment_of` does. Those of a topic should follow one another."""
    found: list[ReplicaAssignment] = []
    for name, those in groupby(tps, itemgetter(0)):
        partitions = topics[name].znode.partitions if name in topics else {}
        found += [partitions.get(number, UNASSIGNED) for _, number in those]
    return found


def assignment_of(topics: Mapping[str, KnownTopic], tp: TopicPartition) -> ReplicaAssignment:
    """Return the assignment of a partition, an empty one if it is unknown."""
    topic = topics.get(tp[0])
    return UNASSIGNED if topic is None else topic.znode.partitions.get(tp[1], UNASSIGNED)
