"""The partitions of which each broker holds a replica, in the order in which they came to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

from attrs import define, field

from transport.metadata import TopicPartition

K = TypeVar("K")
V = TypeVar("V")


def shrink(entries: dict[K, V]) -> None:
    """Let a dictionary take the memory that its entries need."""
    rest = dict(entries)
    entries.clear()
    entries.update(rest)


@define
class HeldPartitions:
    """The partitions by broker. A list takes a fifth of the memory of a dictionary, and many are added at a time."""

    _tps: defaultdict[int, list[TopicPartition]] = field(factory=lambda: defaultdict(list), init=False)
    _gone: defaultdict[int, set[TopicPartition]] = field(factory=lambda: defaultdict(set), init=False)
    """The entries that brokers hold no longer, which are taken out of the lists together, later."""

    _gone_topics: defaultdict[int, set[str]] = field(factory=lambda: defaultdict(set), init=False)
    """The topics of which brokers hold no partition any longer; they are taken out likewise."""

    def add(self, broker_id: int, tp: TopicPartition) -> None:
        """Add a partition that the broker does not hold."""
        # It may still be in the list, at a place that is no longer its own.
        if tp in self._gone[broker_id] or tp.topic in self._gone_topics[broker_id]:
            self._take_out(broker_id)
        self._tps[broker_id].append(tp)

    def add_all(self, tps: Iterable[TopicPartition], replicas: Iterable[tuple[int, ...]]) -> None:
        """Add partitions that their brokers do not hold; `replicas` has the brokers of each."""
        self.compact()
        lists = self._tps
        for tp, brokers in zip(tps, replicas, strict=True):
            for broker_id in brokers:
                lists[broker_id].append(tp)

    def remove_topic(self, name: str, brokers: Iterable[int]) -> None:
        """Remove the partitions of a topic from the brokers that hold some."""
        for broker_id in brokers:
            self._gone_topics[broker_id].add(name)

    def remove(self, broker_id: int, tp: TopicPartition) -> None:
        """Remove a partition that the broker holds."""
        gone = self._gone[broker_id]
        gone.add(tp)
        if 2 * len(gone) > len(self._tps[broker_id]):
            self._take_out(broker_id)

    def on(self, broker_id: int) -> list[TopicPartition]:
        """Return the partitions of a broker; the list may change later."""
        self._take_out(broker_id)
        return self._tps[broker_id]

    def brokers(self) -> list[int]:
        """Return the ids of the brokers that hold partitions, sorted."""
        self.compact()
        return sorted(broker_id for broker_id, tps in self._tps.items() if tps)

    def sizes(self) -> dict[int, int]:
        """Return the number of partitions of each broker that holds some."""
        return {broker_id: len(self.on(broker_id)) for broker_id in self.brokers()}

    def compact(self) -> None:
        """Take out what brokers hold no longer."""
        for broker_id in {*self._gone, *self._gone_topics}:
            self._take_out(broker_id)

    def _take_out(self, broker_id: int) -> None:
        gone, topics = self._gone.pop(broker_id, ()), self._gone_topics.pop(broker_id, ())
        if gone or topics:
            self._tps[broker_id] = [tp for tp in self._tps[broker_id] if tp not in gone and tp.topic not in topics]
