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
    _gone: defaultdict[int, dict[TopicPartition, None]] = field(factory=lambda: defaultdict(dict), init=False)
    """The entries that brokers hold no longer, which are taken out of the lists together, later."""

    def add(self, broker_id: int, tp: TopicPartition) -> None:
        """Add a partition that the broker does not hold."""
        # It may still be in the list, at a place that is no longer its own.
        if tp in self._gone[broker_id]:
            self._take_out(broker_id)
        self._tps[broker_id].append(tp)

    def add_all(self, tps: Iterable[TopicPartition], replicas: Iterable[tuple[int, ...]]) -> None:
        """Add partitions that their brokers do not hold; `replicas` has the brokers of each."""
        self.compact()
        lists = self._tps
        for tp, brokers in zip(tps, replicas, strict=True):
            for broker_id in brokers:
                lists[broker_id].append(tp)

    def remove_all(self, tps: Iterable[TopicPartition], replicas: Iterable[tuple[int, ...]]) -> None:
        """Remove partitions from those of the brokers that hold them; `replicas` has the brokers of each."""
        gone: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for tp, brokers in zip(tps, replicas, strict=True):
            for broker_id in brokers:
                gone[broker_id].append(tp)
        for broker_id, of_broker in gone.items():
            self.remove(broker_id, of_broker)

    def remove(self, broker_id: int, tps: Iterable[TopicPartition]) -> None:
        """Remove partitions that the broker holds."""
        gone = self._gone[broker_id]
        gone.update(dict.fromkeys(tps))
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
        for broker_id in list(self._gone):
            self._take_out(broker_id)

    def _take_out(self, broker_id: int) -> None:
        if gone := self._gone.pop(broker_id, None):
            self._tps[broker_id] = [tp for tp in self._tps[broker_id] if tp not in gone]
