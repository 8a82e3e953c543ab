"""The steps of a round as its driver takes them: many at once are committed, applied and published.

Any steps are a `Batch`. A round that writes many leaderships has them as columns, `LeadershipSteps`: their facts and
publications are about many partitions, and a `Step` is made only where one of them was not committed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import overload

from controller.model.context import ControllerContext
from controller.model.descriptions import describe_all
from controller.model.elections import Choice
from controller.model.facts import Fact, LeadershipsWritten, PartitionsMoved, ReplicasOfBrokerMoved, TopicWritten
from controller.model.rounds import Publication, Step, TellLeaderships, TellMetadata, TellStopReplica
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from transport.messages import PartitionState, StopReplicaPartition
from transport.metadata import NO_LEADER, LeaderAndIsr, TopicPartition
from transport.store import formats, paths
from transport.store.chunks import Group
from transport.store.protocol import Set


class Batch(Sequence[Step]):
    """Steps in their order, and what they do together."""

    def __init__(self, context: ControllerContext, steps: Sequence[Step]) -> None:
        self._context = context
        self._steps = steps

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | Sequence[Step]:
        return self._steps[index]

    def __len__(self) -> int:
        return len(self._steps)

    def only(self, indexes: Sequence[int]) -> Batch:
        """Return some of the steps."""
        return self if len(indexes) == len(self) else Batch(self._context, [self._steps[i] for i in indexes])

    @property
    def subjects(self) -> tuple[TopicPartition, ...]:
        """The partitions that the steps are about."""
        return tuple([tp for step in self._steps for tp in step.subjects])

    @property
    def groups(self) -> Sequence[Group]:
        """The operations of each step, which are committed together or not at all."""
        return [step.writes for step in self._steps]

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
        return [self._context.describe(tp) for tp in self.subjects if tp in self._context.leadership]


def batch_of(context: ControllerContext, steps: Sequence[Step]) -> Batch:
    """Return steps as a batch."""
    return steps if isinstance(steps, Batch) else Batch(context, steps)


class LeadershipSteps(Batch):
    """Steps that write the next leaderships of partitions over the versions that the context holds, or the first ones.

    Each column has an entry for each partition: its leadership after the step, and the choice that led to it, which is
    one object for all partitions that were decided alike. A partition whose choice changes nothing is not written. With
    `are_new`, the replicas have no data yet.
    """

    def __init__(self, context: ControllerContext, *, are_new: bool = False) -> None:
        super().__init__(context, ())
        self._are_new = are_new
        self._tps: list[TopicPartition] = []
        self._leaderships: list[LeaderAndIsr] = []
        self._choices: list[Choice] = []
        self._writes: list[Group] = []
        self._described: list[PartitionState] | None = None

    def add(self, tp: TopicPartition, leadership: LeaderAndIsr, choice: Choice, writes: Group | None = None) -> None:
        """Add the step of a partition, with `writes` if they are not of its state alone."""
        self._tps.append(tp)
        self._leaderships.append(leadership)
        self._choices.append(choice)
        if writes is None:
            writes = (_write(tp, leadership),) if choice.is_change else ()
        self._writes.append(writes)

    def __len__(self) -> int:
        return len(self._tps)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | Sequence[Step]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        one = self.only([range(len(self))[index]])
        return Step(one.subjects, tuple(one.groups[0]), tuple(one.facts()), tuple(one.publications()))

    def only(self, indexes: Sequence[int]) -> LeadershipSteps:
        """Return some of the steps."""
        if len(indexes) == len(self):
            return self
        part = LeadershipSteps(self._context, are_new=self._are_new)
        part._tps = [self._tps[i] for i in indexes]
        part._leaderships = [self._leaderships[i] for i in indexes]
        part._choices = [self._choices[i] for i in indexes]
        part._writes = [self._writes[i] for i in indexes]
        return part

    @property
    def subjects(self) -> tuple[TopicPartition, ...]:
        """The partitions."""
        return tuple(self._tps)

    @property
    def groups(self) -> Sequence[Group]:
        """The operation of each partition."""
        return self._writes

    @property
    def known(self) -> frozenset[str]:
        """None: the states of partitions are not watched."""
        return frozenset()

    def facts(self) -> Iterator[Fact]:
        """Yield facts about all partitions.

        A partition left without a leader goes Offline, so that its election is retried (KAFKA-14808).
        """
        rows = zip(self._tps, self._leaderships, self._choices, strict=True)
        written = [(tp, leadership) for tp, leadership, choice in rows if choice.is_change]
        led = [tp for tp, leadership in written if leadership.leader != NO_LEADER]
        leaderless = [tp for tp, leadership in written if leadership.leader == NO_LEADER]
        if written:
            yield LeadershipsWritten([tp for tp, _ in written], [leadership for _, leadership in written])
        if led:
            yield PartitionsMoved(led, PartitionPhase.ONLINE)
        if leaderless:
            yield PartitionsMoved(leaderless, PartitionPhase.OFFLINE)
        yield from self._replicas_gone()

    def _replicas_gone(self) -> Iterator[Fact]:
        gone: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for tp, choice in zip(self._tps, self._choices, strict=True):
            for broker_id in choice.gone:
                gone[broker_id].append(tp)
        phases = self._context.replica_phases
        for broker_id, tps in gone.items():
            yield ReplicasOfBrokerMoved(
                broker_id, [tp for tp in tps if (tp, broker_id) in phases], ReplicaPhase.OFFLINE
            )

    def publications(self) -> Iterator[Publication]:
        """Yield LeaderAndIsr for the recipients of each choice, the metadata for every broker, and StopReplica."""
        states = self.states()
        both = list(zip(states, self._choices, strict=True))
        told = [(state, choice.recipients) for state, choice in both if choice.recipients]
        if told:
            recipients = [recipients for _, recipients in told]
            yield TellLeaderships(recipients, [state for state, _ in told], self._are_new)
        news = [state for state, choice in both if choice.is_news]
        if news:
            yield TellMetadata(None, tuple(news))
        for state, choice in both:
            if choice.stopped:
                yield TellStopReplica(choice.stopped, _stop(state))

    def states(self) -> list[PartitionState]:
        """Return the states of all partitions, which are those that brokers are told."""
        if self._described is None:
            self._described = describe_all(self._context, self._tps, self._leaderships)
        return self._described


def _write(tp: TopicPartition, leadership: LeaderAndIsr) -> Set:
    data = formats.encode_partition_state(leadership)
    return Set(paths.partition_state(tp), data, leadership.partition_epoch - 1)


def _stop(state: PartitionState) -> StopReplicaPartition:
    return StopReplicaPartition(state.topic, state.topic_id, state.partition, state.leader_epoch, delete=False)
