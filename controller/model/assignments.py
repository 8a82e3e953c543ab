"""The steps that write assignments: each is that of some partitions of one topic, whose znode it writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from attrs import frozen

from controller.model.batches import Columns, LeadershipSteps
from controller.model.context import ControllerContext
from controller.model.elections import Choice
from controller.model.facts import Fact, ReplicasMoved, TopicWritten
from controller.model.rounds import Publication
from controller.model.state_machines import ReplicaPhase
from transport.messages import PartitionState
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store import paths
from transport.store.chunks import Group


@frozen
class Change:
    """The next assignment of a partition and of all that are alike.

    `choice` says how it is led then; None if it has never been led. Of its replicas, some are `added`. Those that have
    no state yet are `first` new, and those that have `begun` go online.
    """

    assignment: ReplicaAssignment
    choice: Choice | None
    added: tuple[int, ...]
    first: tuple[int, ...]
    begun: tuple[int, ...]


Changes = Mapping[TopicPartition, Change]
"""The next assignments of partitions, and what comes with them."""


@frozen
class TopicWrite:
    """A write of a topic's znode, together with what accompanies the change of each partition.

    `led` has their leaderships, and `facts` are those that are neither about the topic, nor follow from the changes.
    """

    topic: TopicWritten
    changes: Changes
    group: Group
    led: Mapping[TopicPartition, LeaderAndIsr]
    facts: tuple[Fact, ...]


class AssignmentSteps(Columns):
    """Steps that write assignments, and the leaderships that go with them, in the order of the topics."""

    def __init__(self, context: ControllerContext, topics: Sequence[TopicWrite]) -> None:
        super().__init__(context, ())
        self._topics = topics
        self._changes = dict(chain.from_iterable([topic.changes.items() for topic in topics]))
        led = dict(chain.from_iterable([topic.led.items() for topic in topics]))
        choices = [choice for change in self._changes.values() if (choice := change.choice) is not None]
        znodes = {topic.topic.name: topic.topic.znode for topic in topics}
        self._led = LeadershipSteps(context, tuple(led), list(led.values()), choices, [()] * len(led), znodes)

    def __len__(self) -> int:
        return len(self._topics)

    def only(self, indexes: Sequence[int]) -> AssignmentSteps:
        """Return some of the steps."""
        if len(indexes) == len(self):
            return self
        return AssignmentSteps(self._context, [self._topics[i] for i in indexes])

    @property
    def subjects(self) -> tuple[TopicPartition, ...]:
        """The partitions."""
        return tuple(self._changes)

    @property
    def groups(self) -> Sequence[Group]:
        """The operations for each topic."""
        return [topic.group for topic in self._topics]

    @property
    def known(self) -> frozenset[str]:
        """The znodes of the topics."""
        return frozenset([paths.topic(topic.topic.name) for topic in self._topics])

    def facts(self) -> Iterator[Fact]:
        """Yield those about the topics first: an added replica has to be assigned before it enters a state."""
        yield from [topic.topic for topic in self._topics]
        yield from chain.from_iterable([topic.facts for topic in self._topics])
        first = {tp: change.first for tp, change in self._changes.items() if change.first}
        begun = {tp: change.begun for tp, change in self._changes.items() if change.begun}
        for moved, phase in ((first, ReplicaPhase.NEW), (begun, ReplicaPhase.ONLINE)):
            if moved:
                yield ReplicasMoved(tuple(moved), tuple(moved.values()), phase)
        yield from self._led.facts()

    def publications(self) -> Iterator[Publication]:
        """Yield what brokers are told of the leaderships."""
        return self._led.publications()

    def states(self) -> list[PartitionState]:
        """Return the states of the partitions that are led."""
        return self._led.states()
