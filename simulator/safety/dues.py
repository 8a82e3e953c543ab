"""Check that a controller that has ended an event owes no partition anything, as far as it can know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from attrs import define, field

from simulator.model.dues import due, due_at_failover
from simulator.model.row import Row
from simulator.model.view import View
from simulator.safety.by_hand import ByHand
from simulator.safety.controllership import Controllership
from simulator.safety.knowledge import Knowledge
from simulator.safety.partitions import PartitionChange, Partitions
from simulator.safety.promises import Promises
from transport.metadata import TopicPartition


@define
class Dues:
    """The partitions that have changed during each controller's event."""

    partitions: Partitions
    controllership: Controllership
    promises: Promises
    by_hand: ByHand
    _changed: dict[str, dict[TopicPartition, None]] = field(factory=dict, init=False)
    _is_new: dict[str, bool] = field(factory=dict, init=False)
    """Whether each controller has taken office in the event in progress."""

    def took_office(self, host: str) -> None:
        """Record that a controller takes office: at the end of this event it owes the most."""
        self._is_new[host] = True

    def committed(self, host: str, changes: Sequence[PartitionChange]) -> None:
        """Record a controller's changes."""
        self.concerns(host, [change.tp for change in changes])

    def concerns(self, host: str, tps: Iterable[TopicPartition]) -> None:
        """Record that a controller learns something about partitions."""
        self._changed.setdefault(host, {}).update((tp, None) for tp in tps)

    def ended_event(self, host: str, knowledge: Knowledge, *, has_news: bool, is_in_office: bool) -> Iterator[str]:
        """Check the partitions that an event has changed, or all if it brought news of brokers."""
        changed, is_new = self._changed.pop(host, {}), self._is_new.pop(host, False)
        # What a controller knows that has lost its office is of no use, even if it has not noticed.
        if not is_in_office or self.controllership.holder != host or knowledge.brokers is None:
            return
        for tp in [tp for tp, _ in self.partitions] if has_news or is_new else changed:
            yield from self._check(host, tp, knowledge, is_new=is_new)

    def _check(self, host: str, tp: TopicPartition, knowledge: Knowledge, *, is_new: bool) -> Iterator[str]:
        partition = self.partitions.get(tp)
        if partition is None or partition.leadership is None or self.by_hand.has(tp) or self._is_doomed(tp.topic):
            return
        if self.partitions.exempt.has_topic(tp.topic):
            return
        row = Row(partition.assignment, partition.leadership)
        found = list(islice(knowledge.views(tp, row.replicas), 2))
        if len(found) > 1:
            return
        view = View(self.controllership.epoch, "", found[0])
        owed = due(row, view) or (due_at_failover(row, view) if is_new else None)
        if owed is not None:
            brokers = ", ".join(f"{id_} {standing.value}" for id_, standing in found[0].items())
            yield f"{tp}: {host} has ended an event, but {owed}: {partition.leadership}; brokers {brokers}"

    def _is_doomed(self, topic: str) -> bool:
        return any(name == topic for name, _ in self.promises.doomed)
