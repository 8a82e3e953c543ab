"""Records the requests of administrators and the controllers' commits, and checks that they are linearizable.

Every partition has a history of its own, and every topic: linearizability of each is linearizability of all. A request
for many partitions is one operation on each, because it may be carried out for some of them only. Commits say when
the store changed, so that no answer is explained by a change that came later, or is missing.

An answer of a controller that was deposed by hand, and could not know it yet when it was asked, may be as old as the
end of its office. No other answer may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from attrs import define, field, frozen
from msgspec.structs import replace

from simulator.linearizability import partition, settings, topic
from simulator.linearizability.checker import Drifts, Interval, Operation, TooLong, Unexplained, unexplained
from simulator.linearizability.partition import ModelPartition
from simulator.linearizability.settings import ModelSettings
from simulator.linearizability.stored import Touched, leader_in, partition_of, settings_in, topic_in, touched_by
from simulator.linearizability.topic import ModelTopic
from simulator.safety.exemptions import Exemptions
from simulator.safety.partitions import is_controller
from simulator.settings import host_of
from simulator.store.durable import Durable
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store import formats, paths, rollouts
from transport.store.protocol import Check, Create, Delete, Op, Set

MOST_PARTITIONS: Final = 100
"""The number of partitions of a topic that have a history: the first ones."""

MOST_RECORDED: Final = 100_000
"""The number of operations and commits recorded in all."""

S = TypeVar("S")


@frozen
class Operations:
    """The operations of a request: on topics, on partitions, and on settings of topics ("" for the default of all)."""

    topics: Mapping[str, Operation[ModelTopic]] = field(factory=dict)
    partitions: Mapping[TopicPartition, Operation[ModelPartition]] = field(factory=dict)
    settings: Mapping[str, Operation[ModelSettings]] = field(factory=dict)


@define
class TopicHistory:
    """The operations on a topic and on each of its partitions, and their latest states in the store."""

    intervals: list[Interval[ModelTopic]] = field(factory=list)
    partitions: dict[int, list[Interval[ModelPartition]]] = field(factory=dict)
    alterations: list[Interval[ModelSettings]] = field(factory=list)
    stored: ModelTopic = topic.ABSENT
    assignments: dict[int, ModelPartition] = field(factory=dict)
    stored_settings: ModelSettings = settings.NONE_SET
    is_written_by_others: bool = False
    """Whether the topic's rows were written by hand; nobody knows then what controllers make of them."""

    are_settings_written_by_others: bool = False


@define
class AdminHistory:
    """The histories of all topics, since the cluster began."""

    exempt: Exemptions
    may_be_stale: Callable[[str], bool]
    """Returns whether the controller on a host has been deposed and cannot know it yet."""

    _topics: dict[str, TopicHistory] = field(factory=dict, init=False)
    _now: int = field(default=0, init=False)
    """The number of the latest event."""

    _recorded: int = field(default=0, init=False)
    _holder: str = field(default="", init=False)
    _lost_office: dict[str, int] = field(factory=dict, init=False)
    """When each former controller last lost its office."""

    # --- requests -------------------------------------------------------------------------------------------------

    def request(self) -> AdminRequest:
        """Return a request that is made now."""
        return AdminRequest(self, self.tick())

    def tick(self) -> int:
        """Return the number of the next event."""
        self._now += 1
        return self._now

    def known_up_to(self, controller_id: int) -> int:
        """Return the time up to which a controller certainly knows all changes: now, unless it may be stale."""
        host = host_of(controller_id)
        return self._lost_office.get(host, self._now) if self.may_be_stale(host) else self._now

    def add_to_topic(self, name: str, interval: Interval[ModelTopic]) -> None:
        """Record an operation on a topic."""
        self._recorded += 1
        if self._recorded <= MOST_RECORDED:
            self._topics.setdefault(name, TopicHistory()).intervals.append(interval)

    def add_to_partition(self, tp: TopicPartition, interval: Interval[ModelPartition]) -> None:
        """Record an operation on a partition."""
        self._recorded += 1
        partitions = self._topics.setdefault(tp.topic, TopicHistory()).partitions
        if self._recorded <= MOST_RECORDED and tp.partition < MOST_PARTITIONS:
            partitions.setdefault(tp.partition, []).append(interval)

    def add_to_settings(self, name: str, interval: Interval[ModelSettings]) -> None:
        """Record an operation on the settings of a topic, or of all brokers if the name is ""."""
        self._recorded += 1
        if self._recorded <= MOST_RECORDED:
            self._topics.setdefault(name, TopicHistory()).alterations.append(interval)

    # --- commits --------------------------------------------------------------------------------------------------

    def committed(self, host: str, ops: Sequence[Op], durable: Durable) -> None:
        """Record a commit, right after it took effect."""
        writes = [op for op in ops if not isinstance(op, Check)]
        if is_controller(host) and any(op.path == paths.CONTROLLER_EPOCH for op in writes):
            self._lost_office[self._holder] = self.tick()
            self._holder = host
        for name, touched in touched_by(writes).items():
            history = self._topics.setdefault(name, TopicHistory())
            if history.is_written_by_others or self.exempt.has_topic(name):
                history.is_written_by_others = True
            elif is_controller(host):
                self._compare(name, history, touched, durable)
            else:
                self._written_by_hand(name, history, touched, writes)
        for op in writes:
            if op.path == paths.REASSIGN_PARTITIONS and not is_controller(host) and not isinstance(op, Delete):
                self._requested_by_hand(op)
            if op.path.startswith(f"{paths.ROLLOUTS}/") and "/moves/" in op.path and not isinstance(op, Delete):
                self._planned(op)

    def _compare(self, name: str, history: TopicHistory, touched: Touched, durable: Durable) -> None:
        """Record how a controller's commit changed the store."""
        at = self.tick(), self.tick()
        if touched.is_settings and not history.are_settings_written_by_others:
            self._compare_settings(name, history, at, durable, comes_or_goes=touched.is_topic)
        numbers = touched.states & history.assignments.keys()
        assignments: Mapping[int, ReplicaAssignment] = {}
        if touched.is_topic or numbers:
            known = durable.topic(name)
            assignments = {} if known is None else known.partitions
        if touched.is_topic:
            self._compare_topic(name, history, at, durable)
            numbers = {*history.assignments, *assignments}
        for number in sorted(number for number in numbers if number < MOST_PARTITIONS):
            tp = TopicPartition(name, number)
            was = history.assignments.get(number, partition.ABSENT)
            leader = was.leader if was.exists and number not in touched.states else leader_in(durable, tp)
            now = partition_of(history.stored, assignments.get(number), leader)
            history.assignments[number] = now
            if now != was:
                self._changed(tp, was, now, at)

    def _compare_topic(self, name: str, history: TopicHistory, at: tuple[int, int], durable: Durable) -> None:
        (before, after), stored = at, topic_in(durable, name)
        if stored != history.stored:
            self.add_to_topic(name, Interval(topic.Stored(history.stored, checks=True), before, before))
            self.add_to_topic(name, Interval(topic.Stored(stored), after, after))
            history.stored = stored

    def _compare_settings(
        self, name: str, history: TopicHistory, at: tuple[int, int], durable: Durable, *, comes_or_goes: bool
    ) -> None:
        (before, after), stored = at, settings_in(durable, name)
        if comes_or_goes:
            self.add_to_settings(name, Interval(settings.Reset(stored), after, after))
        elif stored != history.stored_settings:
            self.add_to_settings(name, Interval(settings.Stored(history.stored_settings, checks=True), before, before))
            self.add_to_settings(name, Interval(settings.Stored(stored), after, after))
        history.stored_settings = stored

    def _changed(self, tp: TopicPartition, was: ModelPartition, now: ModelPartition, at: tuple[int, int]) -> None:
        before, after = at
        if replace(was, leader=now.leader) != now:
            self.add_to_partition(tp, Interval(partition.Stored(was, checks=True), before, before))
        self.add_to_partition(tp, Interval(partition.Stored(now), after, after))

    def _written_by_hand(self, name: str, history: TopicHistory, touched: Touched, writes: Sequence[Op]) -> None:
        history.are_settings_written_by_others |= touched.is_settings
        if not touched.is_topic and not touched.states:
            return
        if [op.path for op in writes] != [paths.delete_topic(name)] or not isinstance(writes[0], Create):
            history.is_written_by_others = True
            return
        at = self.tick()
        self.add_to_topic(name, Interval(topic.Marked(), at, at))
        history.stored = topic.marked(history.stored)
        for number, stored in history.assignments.items():
            marker = partition.Written(is_marked=True)
            self.add_to_partition(TopicPartition(name, number), Interval(marker, at, at))
            history.assignments[number] = partition.marked(stored)

    def _requested_by_hand(self, op: Create | Set) -> None:
        try:
            entries = formats.decode_reassign_partitions(op.data)
        except formats.UndecodableZnode:
            return
        at = self.tick()
        for tp, target in entries.items():
            self.add_to_partition(tp, Interval(partition.Written(target=target), at, at))

    def _planned(self, op: Create | Set) -> None:
        """Record the moves of a plan, which may be made, cancelled and taken back at any time, with throttles."""
        at = self.tick()
        try:
            moves = rollouts.decode_part(op.path, op.data)
        except formats.UndecodableZnode:
            return  # no controller carries it out
        for move in moves:
            for target in (move.after, move.before):
                self.add_to_partition(move.tp, Interval(partition.Written(target=target), at, at))
            self._topics.setdefault(move.topic, TopicHistory()).are_settings_written_by_others = True

    # --- the verdict ----------------------------------------------------------------------------------------------

    def judge(self) -> Verdict:
        """Check all histories."""
        verdict = Verdict()
        for name, history in self._topics.items():
            if history.is_written_by_others or self.exempt.has_topic(name):
                verdict.written_by_others += 1
                continue
            verdict.take(name, self._judge(topic.ABSENT, history.intervals, topic.drifts))
            if not history.are_settings_written_by_others:
                found = self._judge(settings.NONE_SET, history.alterations, settings.drifts)
                verdict.take(f"the settings of {name or 'all brokers'}", found)
            verdict.too_long += max((history.stored.count or 0) - MOST_PARTITIONS, 0)
            for number, own in history.partitions.items():
                together = [*_of_topic(history.intervals, number), *own]
                verdict.take(f"{name}-{number}", self._judge(partition.ABSENT, together, partition.drifts))
        return verdict

    def _judge(self, first: S, intervals: Sequence[Interval[S]], drifts: Drifts[S]) -> Unexplained[S] | TooLong | None:
        if self._recorded > MOST_RECORDED:
            return TooLong()
        try:
            return unexplained(first, intervals, drifts)
        except TooLong as given_up:
            return given_up


@define
class Verdict:
    """The verdicts on the histories of a run."""

    faults: list[str] = field(factory=list)
    """A sentence for each history that no order explains."""

    explained: int = 0
    too_long: int = 0
    written_by_others: int = 0

    def take(self, name: str, found: object) -> None:
        """Count the verdict on a history: None if it is explained."""
        if isinstance(found, TooLong):
            self.too_long += 1
        elif found is None:
            self.explained += 1
        else:
            self.faults.append(f"{name}: {found}")


@define
class AdminRequest:
    """A request between its invocation and its answer, and what the controllers knew that it was sent to."""

    history: AdminHistory
    invoked: int
    _known_up_to: list[int] = field(factory=list, init=False)
    """For each controller that the request was sent to, the time up to which it certainly knew all changes."""

    def sent_to(self, controller_id: int) -> None:
        """Record that the request is sent to a controller."""
        self._known_up_to.append(self.history.known_up_to(controller_id))

    def answered(self, operations: Operations) -> None:
        """Record the operations that the answer reports."""
        answered = self.history.tick()
        self._record(operations, min([self.invoked, *self._known_up_to]), answered)

    def refused(self, operations: Operations) -> None:
        """Record that the request failed as a whole: it did nothing, unless it was sent to more than one controller."""
        if len(self._known_up_to) > 1:
            self.unanswered(operations)

    def unanswered(self, operations: Operations) -> None:
        """Record the operations that the request may still carry out, or never."""
        self._record(operations, self.invoked, None)

    def _record(self, operations: Operations, asked: int, answered: int | None) -> None:
        for name, on_topic in operations.topics.items():
            self.history.add_to_topic(name, Interval(on_topic, asked, answered))
        for tp, on_partition in operations.partitions.items():
            self.history.add_to_partition(tp, Interval(on_partition, asked, answered))
        for name, on_settings in operations.settings.items():
            self.history.add_to_settings(name, Interval(on_settings, asked, answered))


def _of_topic(intervals: Sequence[Interval[ModelTopic]], number: int) -> Iterator[Interval[ModelPartition]]:
    for interval in intervals:
        operation = topic.on_partition(interval.operation, number)
        if operation is not None:
            yield Interval(operation, interval.invoked, interval.answered)
