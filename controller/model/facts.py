"""What the context can be told: facts that were committed to the store or observed in it.

`ControllerContext.apply` replays facts and is the only way to change the context, so that memory holds exactly
what was committed, and never runs ahead of it.
"""

from __future__ import annotations

import re

from attrs import frozen

from controller.model.partition_states import PartitionPhase
from controller.model.reassignment import ReassignmentIdentity
from controller.model.replica_states import ReplicaPhase
from transport.metadata import EPOCH_DURING_DELETE, BrokerRegistration, LeaderAndIsr, Stray, TopicPartition
from transport.store.formats import TopicZnode

Replica = tuple[TopicPartition, int]
"""One replica: a partition and the id of the broker that holds it."""


@frozen
class BrokerRegistered:
    """A broker is registered: for the first time, with a new broker epoch, or under the same one elsewhere."""

    registration: BrokerRegistration


@frozen
class BrokerGone:
    """A broker's registration is gone."""

    broker_id: int


@frozen
class BrokerShuttingDown:
    """A live broker is about to stop: it is not to lead or to come into an ISR any more."""

    broker_id: int


@frozen
class TopicWritten:
    """A topic's znode has this content at this dataVersion."""

    name: str
    znode: TopicZnode
    version: int


@frozen
class TopicClosed:
    """A topic's znode exists, but we may not read it, or not give it an id."""

    name: str


@frozen
class TopicGone:
    """A topic's znode is gone."""

    name: str


@frozen
class ConfigChangesSeen:
    """These notifications below `/config/changes` have been handled."""

    names: frozenset[str]


@frozen
class MinIsrRead:
    """A topic's settings demand this number of in-sync replicas for acks=all."""

    topic: str
    min_isr: int


@frozen
class DeletionStarted:
    """A known topic is being deleted: from now on it takes part in nothing else."""

    topic: str


@frozen
class LeadershipWritten:
    """A partition's state znode has this content."""

    tp: TopicPartition
    leadership: LeaderAndIsr


@frozen
class PartitionMoved:
    """A partition goes into a state of its state machine."""

    tp: TopicPartition
    phase: PartitionPhase


@frozen
class ReplicaMoved:
    """A replica goes into a state of its state machine."""

    replica: Replica
    phase: ReplicaPhase


@frozen
class ReplicasMoved:
    """Several replicas of a partition go into a state of their state machine."""

    tp: TopicPartition
    brokers: tuple[int, ...]
    phase: ReplicaPhase


@frozen
class PartitionFound:
    """A new controller found a partition in this state, with this leadership if it has one, and its replicas in theirs.

    `online` and `offline` are the replicas by the state that they begin with.
    """

    tp: TopicPartition
    phase: PartitionPhase
    leadership: LeaderAndIsr | None
    online: tuple[int, ...]
    offline: tuple[int, ...]


@frozen
class ReassignmentIdentified:
    """The reassignment of a partition that is under way has this identity."""

    tp: TopicPartition
    identity: ReassignmentIdentity


@frozen
class LogDirOffline:
    """A live broker cannot use the log of one of its replicas."""

    replica: Replica


@frozen
class LogDirOnline:
    """A broker can use the log of a replica again."""

    replica: Replica


@frozen
class StrayLeft:
    """A replica is still to be deleted by its broker; an order of an earlier leader epoch was about an earlier one."""

    stray: Stray
    leader_epoch: int = EPOCH_DURING_DELETE


@frozen
class StrayGone:
    """A replica was deleted by its broker."""

    stray: Stray


@frozen
class StrayRecalled:
    """A replica is needed again while an order to delete it may still be on its way to the broker."""

    stray: Stray


@frozen
class StrayFailed:
    """A broker has answered that it could not delete a replica: no order is on its way until it is told again."""

    stray: Stray


@frozen
class StrayOrdered:
    """A broker is told again to delete a replica."""

    stray: Stray


@frozen
class DeletionAnswered:
    """A broker has answered the order to delete a recalled replica: no such order is on its way any more."""

    stray: Stray


StrayFact = StrayLeft | StrayGone | StrayRecalled | StrayFailed | StrayOrdered | DeletionAnswered

Fact = (
    BrokerRegistered
    | BrokerGone
    | BrokerShuttingDown
    | TopicWritten
    | TopicClosed
    | TopicGone
    | ConfigChangesSeen
    | MinIsrRead
    | DeletionStarted
    | LeadershipWritten
    | PartitionMoved
    | ReplicaMoved
    | ReplicasMoved
    | PartitionFound
    | ReassignmentIdentified
    | LogDirOffline
    | LogDirOnline
    | StrayFact
)


def words(kind: type[Fact]) -> str:
    """Return what logs call a kind of fact: "deletion started" for DeletionStarted."""
    return re.sub("(?<!^)([A-Z])", r" \1", kind.__name__).lower()
