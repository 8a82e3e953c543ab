"""The steps that write assignments: each is that of some partitions of one topic, whose znode it writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from attrs import frozen

from controller.model.batches import LeadershipSteps
from controller.model.context import ControllerContext
from controller.model.elections import Choice
from controller.model.facts import Fact, ReplicasMoved, TopicWritten
from controller.model.state_machines import ReplicaPhase
from transport.metadata import LeaderAndIsr, ReplicaAssignment, TopicPartition
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


class AssignmentSteps(LeadershipSteps):
    """Steps that write assignments, and the leaderships that go with them, in the order of the topics."""

    def __init__(self, context: ControllerContext, writes: Sequence[TopicWrite]) -> None:
        self._writes = writes
        self._changes = dict(chain.from_iterable([write.changes.items() for write in writes]))
        led = dict(chain.from_iterable([write.led.items() for write in writes]))
        choices = [choice for change in self._changes.values() if (choice := change.choice) is not None]
        znodes = {write.topic.name: write.topic.znode for write in writes}
        groups = [write.group for write in writes]
        super().__init__(context, tuple(led), list(led.values()), choices, groups, znodes)
        self.subjects = tuple(self._changes)

    def only(self, indexes: Sequence[int]) -> AssignmentSteps:
        """Return some of the steps."""
        if len(indexes) == len(self):
            return self
        return AssignmentSteps(self._context, [self._writes[i] for i in indexes])

    def facts(self) -> Iterator[Fact]:
        """Yield those about the topics first: an added replica has to be assigned before it enters a state."""
        yield from [write.topic for write in self._writes]
        yield from chain.from_iterable([write.facts for write in self._writes])
        first = {tp: change.first for tp, change in self._changes.items() if change.first}
        begun = {tp: change.begun for tp, change in self._changes.items() if change.begun}
        for moved, phase in ((first, ReplicaPhase.NEW), (begun, ReplicaPhase.ONLINE)):
            if moved:
                yield ReplicasMoved(tuple(moved), tuple(moved.values()), phase)
        yield from super().facts()
