"""Check that what administrators and brokers are told has happened, or is certain to happen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import define, field, frozen

from simulator.safety.controllership import Controllership
from simulator.safety.partitions import Partition, PartitionChange, Partitions
from simulator.store.durable import Durable
from transport.messages import ElectionType
from transport.metadata import NO_LEADER, TopicPartition
from transport.store import paths
from transport.store.protocol import Create, Op

_BELOW_MARKERS: Final = f"{paths.DELETE_TOPICS}/"

_REMEMBERED: Final = 16
"""Number of replica orders remembered for each partition."""

_Key = tuple[TopicPartition, str]


@frozen
class Before:
    """The state when a request was made."""

    controller_epoch: int
    marks: int
    led: dict[_Key, int]
    """The leader epoch of each partition."""

    replicas: dict[_Key, int]
    """The number of replicas of each partition."""

    changes: int
    """The number of changes of partitions."""

    returning: frozenset[_Key]
    """The moves whose target was where they started."""


@define
class Promises:
    """The topics marked for deletion, and the leader epoch at which each partition got its current leader."""

    partitions: Partitions
    controllership: Controllership
    deletes_topics: bool = True
    """Whether the controllers' settings let topics be deleted."""

    doomed: dict[tuple[str, str], int] = field(factory=dict, init=False)
    """Topics that were marked for deletion with their ids, numbered in that order; none where that deletes nothing."""

    _led: dict[_Key, int] = field(factory=dict, init=False)
    _preferred: dict[_Key, int] = field(factory=dict, init=False)
    _orders: dict[_Key, dict[tuple[int, ...], int]] = field(factory=dict, init=False)
    """The latest replica orders whose first replica led, each with the latest leader epoch in which it did."""

    _changes: int = field(default=0, init=False)
    _origins: dict[_Key, tuple[int, ...]] = field(factory=dict, init=False)
    """The replicas of each moving partition before its move, in their order."""

    _turned_back: dict[_Key, int] = field(factory=dict, init=False)
    """The number of the latest change that made a move return to where it started."""

    def committed(self, ops: Sequence[Op], durable: Durable) -> None:
        """Record the topics that a commit marks for deletion."""
        for op in ops if self.deletes_topics else ():
            if isinstance(op, Create) and op.path.startswith(_BELOW_MARKERS):
                name = op.path.removeprefix(_BELOW_MARKERS)
                topic = durable.topic(name)
                self.doomed[name, (topic and topic.topic_id) or ""] = len(self.doomed)

    def changed(self, change: PartitionChange) -> None:
        """Record a leader that was elected, and a move that began or was turned back."""
        self._changes += 1
        after = change.after
        if after is not None:
            self._moved(change, after)
        if after is None or after.leadership is None or after.leadership.leader == NO_LEADER:
            return
        key, epoch = (change.tp, after.topic_id), after.leadership.leader_epoch
        self._led[key] = epoch
        if after.leadership.leader == after.assignment.replicas[0]:
            self._preferred[key] = epoch
            orders = self._orders.setdefault(key, {})
            orders.pop(after.assignment.replicas, None)
            orders[after.assignment.replicas] = epoch
            if len(orders) > _REMEMBERED:
                del orders[next(iter(orders))]

    def _moved(self, change: PartitionChange, after: Partition) -> None:
        key, before = (change.tp, after.topic_id), change.before
        if not change.is_a_controllers and before is not None and before.assignment == after.assignment:
            return
        # Where a move by hand starts from is in no znode of ours.
        if not change.is_a_controllers or not change.is_of_one_topic or before is None:
            self._origins.pop(key, None)
            return
        if not before.assignment.is_being_reassigned and after.assignment.is_being_reassigned:
            self._origins[key] = before.assignment.replicas
        if after.assignment.target_replicas == self._origins.get(key):
            self._turned_back[key] = self._changes

    def before(self) -> Before:
        """Return the current state, to check a later answer against."""
        led, replicas, returning = {}, {}, set[_Key]()
        for tp, partition in self.partitions:
            key = tp, partition.topic_id
            led[key] = -1 if partition.leadership is None else partition.leadership.leader_epoch
            replicas[key] = len(partition.assignment.replicas)
            if partition.assignment.target_replicas == self._origins.get(key):
                returning.add(key)
        return Before(self.controllership.epoch, len(self.doomed), led, replicas, self._changes, frozenset(returning))

    def deletion_answered(self, before: Before, name: str) -> Iterator[str]:
        """Check the answer that the deletion of a topic is certain."""
        ids = {topic_id for tp, topic_id in before.led if tp.topic == name}
        known = any((name, topic_id) in self.doomed for topic_id in ids)
        if self.partitions.exempt.has_topic(name):
            return
        if not known and not any(marked == name for marked, _ in list(self.doomed)[before.marks :]):
            yield f"topic {name} was reported to be deleted, but was not marked"

    def election_answered(
        self, before: Before, kind: ElectionType, tp: TopicPartition, order: tuple[int, ...] | None
    ) -> Iterator[str]:
        """Check the answer that a leader was elected; if an `order` was given, the first of it."""
        partition = self.partitions.get(tp)
        if partition is None or self.partitions.exempt.has_topic(tp.topic):
            return
        key = tp, partition.topic_id
        elected = self._preferred if kind is ElectionType.PREFERRED else self._led
        if key in before.led and elected.get(key, -1) <= before.led[key]:
            yield f"{tp} was reported to have a new leader ({kind.name}), but does not: {partition.leadership}"
        if order is not None and key in before.led and self._orders.get(key, {}).get(order, -1) <= before.led[key]:
            yield f"{tp} was reported to have the order {order}, but does not: {partition.assignment}"

    def cancel_answered(self, before: Before, tp: TopicPartition) -> Iterator[str]:
        """Check the answer that a move is cancelled: it returns to its replicas, in their order."""
        partition = self.partitions.get(tp)
        key = tp, "" if partition is None else partition.topic_id
        if partition is None or key not in self._origins or key in before.returning:
            return
        if self.partitions.exempt.has_topic(tp.topic):
            return
        if self._turned_back.get(key, -1) <= before.changes:
            yield f"{tp} was reported to return to {self._origins[key]}, but does not: {partition.assignment}"

    def relieved(self, before: Before, broker_id: int) -> Iterator[str]:
        """Check the answer that a broker shutting down leads no partition that another replica could lead."""
        if self.controllership.epoch != before.controller_epoch:
            return  # the next controller does not know of the shutdown
        for tp, partition in self.partitions:
            led = partition.leadership is not None and partition.leadership.leader == broker_id
            shared = min(len(partition.assignment.replicas), before.replicas.get((tp, partition.topic_id), 0)) > 1
            if led and shared and not self.partitions.is_exempt(tp.topic):
                yield f"broker {broker_id} was reported to be relieved, but leads {tp}: {partition.leadership}"
