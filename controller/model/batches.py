"""The steps of a round as its driver takes them: many at once are committed, applied and published.

Any steps are a `Batch`. A round that writes many leaderships has them as columns, `LeadershipSteps`: their facts and
publications are about many partitions, and a `Step` is made only where one of them was not committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, compress
from operator import not_
from typing import TypeVar, overload

from controller.model.context import ControllerContext
from controller.model.descriptions import describe_all, describe_led
from controller.model.elections import Choice
from controller.model.facts import Fact, LeadershipsWritten, PartitionsMoved, ReplicasMoved, TopicWritten
from controller.model.rounds import Publication, Step, TellLeaderAndIsr, TellMetadata, TellStopReplica
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from transport.messages import PartitionState, StopReplicaPartition
from transport.metadata import NO_LEADER, LeaderAndIsr, TopicPartition
from transport.store import formats, paths
from transport.store.chunks import Group
from transport.store.formats import TopicZnode
from transport.store.protocol import Set

T = TypeVar("T")


class Batch(Sequence[Step]):
    """Steps in their order, and what they do together.

    `subjects` are the partitions that the steps are about, and `groups` the operations of each step, which are
    committed together or not at all. `facts` are asked for before they are applied, `publications` and `states`
    afterwards.
    """

    subjects: tuple[TopicPartition, ...]
    groups: Sequence[Group]

    def __init__(self, context: ControllerContext, steps: Sequence[Step]) -> None:
        self._context = context
        self._steps = steps
        self.subjects = tuple([tp for step in steps for tp in step.subjects])
        self.groups = [step.writes for step in steps]

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | Sequence[Step]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._step(range(len(self))[index])

    def _step(self, index: int) -> Step:
        return self._steps[index]

    def __len__(self) -> int:
        return len(self.groups)

    def only(self, indexes: Sequence[int]) -> Batch:
        """Return some of the steps."""
        return self if len(indexes) == len(self) else Batch(self._context, [self._steps[i] for i in indexes])

    @property
    def known(self) -> frozenset[str]:
        """The znodes whose content the facts tell once the steps are committed: to read them again shows nothing."""
        return frozenset(paths.topic(fact.name) for fact in self.facts() if isinstance(fact, TopicWritten))

    def facts(self) -> Iterator[Fact]:
        """Yield what becomes true, in the order in which it is applied."""
        for step in self._steps:
            yield from step.facts

    def publications(self) -> Iterator[Publication]:
        """Yield what brokers are told."""
        for step in self._steps:
            yield from step.publications

    def states(self) -> list[PartitionState]:
        """Return the states of the subjects that have leadership, once the steps have been applied."""
        return describe_led(self._context, self.subjects)


def batch_of(context: ControllerContext, steps: Sequence[Step]) -> Batch:
    """Return steps as a batch."""
    return steps if isinstance(steps, Batch) else Batch(context, steps)


class LeadershipSteps(Batch):
    """Steps that write the next leaderships of partitions over the versions that the context holds, or the first ones.

    Each column has an entry for each partition: its leadership after the step, and the choice that led to it, which is
    one object for all partitions that were decided alike. A partition whose choice changes nothing is not written.
    `groups` are the operations of each step, by default those of the partition's state alone, and `topics` the znodes
    that are written with them.
    """

    def __init__(
        self,
        context: ControllerContext,
        tps: Sequence[TopicPartition],
        leaderships: Sequence[LeaderAndIsr],
        choices: Sequence[Choice],
        groups: Sequence[Group] | None = None,
        topics: Mapping[str, TopicZnode] | None = None,
    ) -> None:
        super().__init__(context, ())
        self.subjects = self._tps = tuple(tps)
        self.groups = _writes(tps, leaderships, choices) if groups is None else groups
        self._leaderships = leaderships
        self._choices = choices
        self._topics = topics
        self._described: list[PartitionState] | None = None

    def _step(self, index: int) -> Step:
        one = self.only([index])
        return Step(one.subjects, tuple(one.groups[0]), tuple(one.facts()), tuple(one.publications()))

    def only(self, indexes: Sequence[int]) -> LeadershipSteps:
        """Return some of the steps."""
        if len(indexes) == len(self):
            return self
        tps, choices = _selected(self._tps, indexes), _selected(self._choices, indexes)
        leaderships, groups = _selected(self._leaderships, indexes), _selected(self.groups, indexes)
        return LeadershipSteps(self._context, tps, leaderships, choices, groups, self._topics)

    @property
    def known(self) -> frozenset[str]:
        """The znodes of the topics: the states of partitions are not watched."""
        return frozenset(map(paths.topic, self._topics or ()))

    def facts(self) -> Iterator[Fact]:
        """Yield facts about all partitions.

        A partition left without a leader, or with one that failed, goes Offline, so that its election is retried
        (KAFKA-14808).
        """
        is_written = [choice.is_change for choice in self._choices]
        written = list(compress(self._tps, is_written))
        after = list(compress(self._leaderships, is_written))
        are_led = [self._is_led(tp, leadership.leader) for tp, leadership in zip(written, after, strict=True)]
        if written:
            yield LeadershipsWritten(written, after)
        if any(are_led):
            yield PartitionsMoved(list(compress(written, are_led)), PartitionPhase.ONLINE)
        if not all(are_led):
            yield PartitionsMoved(list(compress(written, map(not_, are_led))), PartitionPhase.OFFLINE)
        yield from self._replicas_gone()

    def _is_led(self, tp: TopicPartition, leader: int) -> bool:
        failures = self._context.failures
        failure = failures.get((tp, leader)) if failures else None
        # A leader that cannot use its log is replaced by none.
        has_failed = failure is not None and failure.keeps_from_leading and not failure.is_of_log
        return leader != NO_LEADER and not has_failed

    def _replicas_gone(self) -> Iterator[Fact]:
        phases = self._context.replica_phases
        gone = [choice.gone for choice in self._choices]
        for broker_id in dict.fromkeys(chain.from_iterable(dict.fromkeys(gone))):
            tps = [tp for tp, brokers in zip(self._tps, gone, strict=True) if broker_id in brokers]
            yield ReplicasMoved.on(broker_id, phases.those_on(broker_id, tps), ReplicaPhase.OFFLINE)

    def publications(self) -> Iterator[Publication]:
        """Yield LeaderAndIsr for the recipients of each choice, the metadata for every broker, and StopReplica."""
        states = self.states()
        recipients = [choice.recipients for choice in self._choices]
        beginners = [choice.beginners for choice in self._choices]
        for brokers, are_new in ((recipients, False), (beginners, True)):
            if any(brokers):
                yield TellLeaderAndIsr(list(filter(None, brokers)), list(compress(states, brokers)), are_new)
        if states:
            yield TellMetadata(None, tuple(states))
        stopped = [(state, choice) for state, choice in zip(states, self._choices, strict=True) if choice.stopped]
        if stopped:
            yield TellStopReplica([choice.stopped for _, choice in stopped], [_stop(*each) for each in stopped])

    def states(self) -> list[PartitionState]:
        """Return the states of all partitions, which are those that brokers are told."""
        if self._described is None:
            self._described = describe_all(self._context, self._tps, self._leaderships, self._topics)
        return self._described


def _writes(
    tps: Sequence[TopicPartition], leaderships: Sequence[LeaderAndIsr], choices: Sequence[Choice]
) -> list[Group]:
    encode = formats.encode_partition_state
    rows = zip(paths.partition_states(tps), leaderships, choices, strict=True)
    return [
        (Set(path, encode(after), after.partition_epoch - 1),) if choice.is_change else ()
        for path, after, choice in rows
    ]


def _selected(column: Sequence[T], indexes: Sequence[int]) -> Sequence[T]:
    """Return some of a column's entries, in order."""
    if indexes and indexes[-1] - indexes[0] == len(indexes) - 1:
        return column[indexes[0] : indexes[-1] + 1]
    return [column[i] for i in indexes]


def _stop(state: PartitionState, choice: Choice) -> StopReplicaPartition:
    return StopReplicaPartition(state.topic, state.topic_id, state.partition, state.leader_epoch, choice.deletes)
