"""The partitions of which each broker holds a replica, in the order in which they came to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
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
class _Held:
    """The partitions of one broker. Those that it holds no longer are taken out of the list together, later."""

    tps: list[TopicPartition] = field(factory=list)
    gone: dict[TopicPartition, None] = field(factory=dict)

    def take_out(self) -> None:
        if self.gone:
            self.tps = [tp for tp in self.tps if tp not in self.gone]
            self.gone = {}


@define
class HeldPartitions:
    """The partitions by broker. A list takes a fifth of the memory of a dictionary, and many are added at a time."""

    _by_broker: dict[int, _Held] = field(factory=dict, init=False)

    def add(self, broker_id: int, tp: TopicPartition) -> None:
        """Add a partition that the broker does not hold."""
        held = self._of(broker_id)
        # It may still be in the list, at a place that is no longer its own.
        if tp in held.gone:
            held.take_out()
        held.tps.append(tp)

    def add_all(self, tps: Iterable[TopicPartition], replicas: Sequence[tuple[int, ...]]) -> None:
        """Add partitions that their brokers do not hold; `replicas` has the brokers of each."""
        lists = {broker_id: self.on(broker_id) for broker_id in set(chain.from_iterable(set(replicas)))}
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
        held = self._of(broker_id)
        held.gone.update(dict.fromkeys(tps))
        if 2 * len(held.gone) > len(held.tps):
            held.take_out()

    def on(self, broker_id: int) -> list[TopicPartition]:
        """Return the partitions of a broker; the list may change later."""
        held = self._of(broker_id)
        held.take_out()
        return held.tps

    def brokers(self) -> list[int]:
        """Return the ids of the brokers that hold partitions, sorted."""
        return sorted(broker_id for broker_id in self._by_broker if self.on(broker_id))

    def sizes(self) -> dict[int, int]:
        """Return the number of partitions of each broker that holds some."""
        return {broker_id: len(self.on(broker_id)) for broker_id in self.brokers()}

    def compact(self) -> None:
        """Take out what brokers hold no longer."""
        for held in self._by_broker.values():
            held.take_out()

    def _of(self, broker_id: int) -> _Held:
        held = self._by_broker.get(broker_id)
        if held is None:
            held = self._by_broker[broker_id] = _Held()
        return held
