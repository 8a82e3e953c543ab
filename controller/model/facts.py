"""Facts: what was committed to the store or observed in it.

`ControllerContext.apply` takes facts and is the only way to change the context, so that memory holds exactly what was
committed and never runs ahead of the store.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from controller.model.reassignment import ReassignmentIdentity
from controller.model.replica_failures import FailureFact
from controller.model.rollout_facts import RolloutFact, RolloutsSettled
from controller.model.state_machines import PartitionPhase, ReplicaPhase, Row
from transport.kafka.releases import Release
from transport.metadata import EPOCH_DURING_DELETE, BrokerRegistration, LeaderAndIsr, Listener, Stray, TopicPartition
from transport.store.formats import TopicZnode

Replica = tuple[TopicPartition, int]
"""One replica: a partition and the id of the broker that holds it."""


@frozen
class BrokerRegistered:
    """A broker is registered: for the first time, with a new broker epoch, or under the same one elsewhere."""

    registration: BrokerRegistration


@frozen
class BrokerUnusable:
    """A broker has a registration that cannot be used: it is alive, and perhaps has no address for the controller.

    `epoch` is the czxid of the znode, -1 where an ACL hides it, and `fault` the reason in one line. `listeners` are
    those of a Kafka broker that lacks only the one for the controller.
    """

    broker_id: int
    epoch: int
    fault: str
    rack: str | None = None
    listeners: tuple[Listener, ...] = ()


@frozen
class BrokerGone:
    """A broker's registration is gone."""

    broker_id: int


@frozen
class BrokersKeptOut:
    """These registered brokers, and no others, lost their data, and must not start before that has been written."""

    broker_ids: frozenset[int]


@frozen
class BrokerShuttingDown:
    """A live broker is about to stop: it may no longer lead or join an ISR."""

    broker_id: int


@frozen
class TopicWritten:
    """A topic's znode has this content at this dataVersion."""

    name: str
    znode: TopicZnode
    version: int


@frozen
class TopicClosed:
    """A topic's znode exists, but an ACL keeps us from reading or mending it."""

    name: str


@frozen
class TopicGone:
    """A topic's znode is gone."""

    name: str


@frozen
class NotificationsKept:
    """Notifications below a path that have been processed stay there, or none of them does."""

    parent: str
    are_kept: bool


@frozen
class MarkersKept:
    """The markers of these topics, and of no others, stay below `/admin/delete_topics`, and delete no topic.

    The `early` ones are those of topics that have not been loaded.
    """

    names: frozenset[str]
    early: frozenset[str] = frozenset()


@frozen
class ConfigChangesSeen:
    """These notifications below `/config/changes` have been handled."""

    names: frozenset[str]


@frozen
class MinIsrRead:
    """A topic's settings require this number of in-sync replicas for acks=all."""

    topic: str
    min_isr: int


@frozen
class DeletionStarted:
    """A known topic is being deleted: from now on it is excluded from everything else."""

    topic: str


@frozen
class LeadershipsWritten:
    """The state znodes of partitions have these contents."""

    tps: Sequence[TopicPartition]
    leaderships: Sequence[LeaderAndIsr]


@frozen
class PartitionsMoved:
    """Partitions enter a state of their state machine."""

    tps: Sequence[TopicPartition]
    phase: PartitionPhase


@frozen
class ReplicasMoved:
    """Replicas of partitions enter a state of their state machine: those of each partition on its `brokers`."""

    tps: Sequence[TopicPartition]
    brokers: Sequence[tuple[int, ...]]
    phase: ReplicaPhase

    @classmethod
    def on(cls, broker_id: int, tps: Sequence[TopicPartition], phase: ReplicaPhase) -> ReplicasMoved:
        """Return the fact about the replicas on one broker."""
        return cls(tps, [(broker_id,)] * len(tps), phase)

    @property
    def replicas(self) -> list[Replica]:
        """The replicas."""
        return [(tp, broker_id) for tp, ids in zip(self.tps, self.brokers, strict=True) for broker_id in ids]


@frozen
class PartitionsFound:
    """The initial states of partitions under a new controller, in columns.

    A partition has no leadership if it never had a leader. The rows have its state and those of its replicas.
    """

    tps: Sequence[TopicPartition]
    leaderships: Sequence[LeaderAndIsr | None]
    rows: Sequence[Row]


@frozen
class ReassignmentIdentified:
    """The reassignment in progress for a partition has this identity."""

    tp: TopicPartition
    identity: ReassignmentIdentity


@frozen
class StrayLeft:
    """A replica remains to be deleted by its broker.

    An order with an earlier leader epoch than `leader_epoch` concerned an earlier replica.
    """

    stray: Stray
    leader_epoch: int = EPOCH_DURING_DELETE


@frozen
class StrayGone:
    """A replica was deleted by its broker."""

    stray: Stray


@frozen
class StrayRecalled:
    """A replica is needed again while an order to delete it may still be in flight."""

    stray: Stray


@frozen
class StrayIgnored:
    """A replica is needed again, and an ACL keeps its record in the store: it is no stray until it is left again."""

    stray: Stray


@frozen
class StrayFailed:
    """A broker could not delete a replica: no order to delete it is in flight until the next one is sent."""

    stray: Stray


@frozen
class StrayOrdered:
    """A broker is sent another order to delete a replica."""

    stray: Stray


@frozen
class DeletionAnswered:
    """A broker has answered the order to delete a recalled replica: no such order is in flight any more."""

    stray: Stray


@frozen
class ReleaseSeen:
    """A connection to a live broker of Apache Kafka's has shown its release."""

    broker_id: int
    release: Release


@frozen
class ControllerRegistered:
    """The controller has a registration of its own among Kafka's brokers, or has none."""

    exists: bool


@frozen
class LeaderOvertaken:
    """A leader of an old release of Kafka's proposed an ISR before it heard of its new leader epoch."""

    tp: TopicPartition
    leadership: LeaderAndIsr | None
    """Its leadership then; None once that has been dealt with."""


BrokerFact = BrokerRegistered | BrokerUnusable | BrokerGone | BrokerShuttingDown | BrokersKeptOut
TopicFact = TopicWritten | TopicClosed | TopicGone | DeletionStarted | MinIsrRead
PartitionFact = LeadershipsWritten | PartitionsMoved | ReplicasMoved | PartitionsFound
StrayFact = StrayLeft | StrayGone | StrayRecalled | StrayIgnored | StrayFailed | StrayOrdered | DeletionAnswered
KafkaFact = ReleaseSeen | ControllerRegistered | LeaderOvertaken
OtherFact = ConfigChangesSeen | MarkersKept | NotificationsKept | ReassignmentIdentified | RolloutFact | RolloutsSettled
Fact = PartitionFact | TopicFact | BrokerFact | StrayFact | KafkaFact | FailureFact | OtherFact


def leaderships_in(applied: Iterable[Fact]) -> Iterator[tuple[TopicPartition, LeaderAndIsr]]:
    """Yield the leaderships that were written, by partition."""
    for fact in applied:
        if isinstance(fact, LeadershipsWritten):
            yield from zip(fact.tps, fact.leaderships, strict=True)


def words(kind: type[Fact]) -> str:
    """Return the name of a kind of fact in logs: "deletion started" for DeletionStarted."""
    return re.sub("(?<!^)([A-Z])", r" \1", kind.__name__).lower()
