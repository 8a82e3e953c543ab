"""The partitions before and after each commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from attrs import define, evolve, field, frozen

from simulator.safety.exemptions import Exemptions
from simulator.store.durable import Durable
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition, number_in
from transport.store import paths
from transport.store.protocol import Check, Create, Delete, Op

_BELOW_TOPICS: Final = f"{paths.TOPICS}/"


@frozen
class Partition:
    """A partition as of a commit. Its leadership is None until it is first elected a leader."""

    topic_id: str
    assignment: ReplicaAssignment
    leadership: LeaderAndIsr | None


@frozen
class PartitionChange:
    """The change of a partition by a commit of `host`; a side is None where the partition did not exist."""

    host: str
    tp: TopicPartition
    before: Partition | None
    after: Partition | None

    @property
    def is_a_controllers(self) -> bool:
        """Whether a controller made the change, not an operator."""
        return is_controller(self.host)

    @property
    def is_of_one_topic(self) -> bool:
        """Whether the partition belongs to the same topic before and after."""
        if self.before is None or self.after is None:
            return False
        return self.before.topic_id in ("", self.after.topic_id)


def is_controller(host: str) -> bool:
    """Return whether a host runs a controller."""
    return host.startswith("controller-")


@define
class Partitions:
    """All partitions as of the last commit, without those of topics that controllers may misread."""

    exempt: Exemptions
    _topics: dict[str, dict[int, Partition]] = field(factory=dict)
    _marked: dict[str, None] = field(factory=dict)

    def get(self, tp: TopicPartition) -> Partition | None:
        """Return a partition, or None."""
        return None if self.exempt.is_unreadable(tp.topic) else self._topics.get(tp.topic, {}).get(tp.partition)

    def is_exempt(self, topic: str) -> bool:
        """Return whether a topic's data no longer matter: it is marked for deletion, or damaged or closed by intent."""
        return topic in self._marked or self.exempt.has_topic(topic)

    def __iter__(self) -> Iterator[tuple[TopicPartition, Partition]]:
        for name, partitions in self._topics.items():
            for number, partition in partitions.items() if not self.exempt.is_unreadable(name) else ():
                yield TopicPartition(name, number), partition

    def take(self, host: str, ops: Sequence[Op], durable: Durable) -> list[PartitionChange]:
        """Apply a commit, right after it took effect, and return the changes that it made."""
        self._take_markers(ops)
        topics, states = self._touched(ops)
        changes: list[PartitionChange] = []
        for name in topics:
            changes += self._take_topic(host, name, states, durable)
        taken = {change.tp for change in changes}
        changes += (self._take_state(host, tp, durable) for tp in states if tp not in taken and self.get(tp))
        return changes

    def _take_markers(self, ops: Sequence[Op]) -> None:
        for op in ops:
            parent, _, name = op.path.rpartition("/")
            if parent == paths.DELETE_TOPICS and isinstance(op, Create):
                self._marked[name] = None
            elif parent == paths.DELETE_TOPICS and isinstance(op, Delete):
                self._marked.pop(name, None)

    def _take_topic(
        self, host: str, name: str, states: Iterable[TopicPartition], durable: Durable
    ) -> Iterator[PartitionChange]:
        topic = durable.topic(name)
        before = self._topics.pop(name, {})
        if self.exempt.is_edited(name) and not is_controller(host) and topic is not None:
            # A controller adopts nothing except new partitions, and writes the rest back.
            held = {number: partition.assignment for number, partition in before.items()}
            topic = evolve(topic, partitions={**topic.partitions, **held})
        after: dict[int, Partition] = {}
        # A tool that does not know topic ids omits the id when it writes; the topic keeps its id (KAFKA-14190).
        known_id = next((partition.topic_id for partition in before.values()), "")
        for number, assignment in sorted(topic.partitions.items() if topic is not None else ()):
            tp, known, topic_id = (
                TopicPartition(name, number),
                before.get(number),
                (topic and topic.topic_id) or known_id,
            )
            is_led_as_before = known is not None and known.topic_id == topic_id and tp not in states
            leadership = known.leadership if known is not None and is_led_as_before else durable.leadership(tp)
            after[number] = Partition(topic_id, assignment, leadership)
        if after:
            self._topics[name] = after
        for number in sorted({*before, *after}):
            if before.get(number) != after.get(number):
                yield PartitionChange(host, TopicPartition(name, number), before.get(number), after.get(number))

    def _take_state(self, host: str, tp: TopicPartition, durable: Durable) -> PartitionChange:
        before, leadership = self._topics[tp.topic][tp.partition], durable.leadership(tp)
        assignment = before.assignment
        # A controller that saw the partition only after somebody's edit starts it as it is now.
        if before.leadership is None and leadership is not None and self.exempt.is_edited(tp.topic):
            assignment = _as_started(leadership, assignment, durable.assignment(tp))
        after = Partition(before.topic_id, assignment, leadership)
        self._topics[tp.topic][tp.partition] = after
        return PartitionChange(host, tp, before, after)

    def _touched(self, ops: Sequence[Op]) -> tuple[dict[str, None], dict[TopicPartition, None]]:
        topics: dict[str, None] = {}
        states: dict[TopicPartition, None] = {}
        for op in ops:
            if isinstance(op, Check) or not op.path.startswith(_BELOW_TOPICS):
                continue
            match op.path.removeprefix(_BELOW_TOPICS).split("/"):
                case [name, *_] if self.exempt.is_unreadable(name):
                    continue
                case [name]:
                    topics[name] = None
                case [name, "partitions", number, "state"] if number_in(number) is not None:
                    states[TopicPartition(name, int(number))] = None
        return topics, states


def _as_started(
    leadership: LeaderAndIsr, known: ReplicaAssignment, written: ReplicaAssignment | None
) -> ReplicaAssignment:
    """Return the assignment with which a controller started a partition: a known one, or the one in the store."""
    is_as_known = set(leadership.isr) <= set(known.replicas)
    return known if is_as_known or written is None else written
