"""The active controller's knowledge: brokers, topics, assignments, leadership, states.

A context lives as long as one controllership (KAFKA-5310) and is used only by the event-queue task. Only `apply`
changes it, from facts that were committed or observed. Indexes (replicas by broker, partitions being reassigned)
follow from the facts, so that queries about one broker need not scan all partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, compress, islice
from operator import is_not
from typing import assert_never

from attrs import Factory, define, field

from controller.config import ControllerConfig
from controller.model import facts
from controller.model.closed import Closed
from controller.model.facts import Fact, Replica
from controller.model.held import HeldPartitions, shrink
from controller.model.kafka_brokers import KafkaBrokers
from controller.model.known_topics import UNASSIGNED, KnownTopic, assignment_of
from controller.model.phases import PartitionPhases, Phases, ReplicaPhases
from controller.model.reassignment import UNIDENTIFIED, ReassignmentIdentity
from controller.model.replica_failures import FailureFact, ReplicaFailures
from controller.model.rollout_facts import RolloutFact, RolloutsSettled
from controller.model.rollouts import Rollouts
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from controller.model.strays import Strays
from transport.messages import BrokerEndpoint, PartitionState
from transport.metadata import BrokerRegistration, LeaderAndIsr, ReplicaAssignment, Stray, TopicPartition


@define
class ControllerContext:
    """The memory of one controllership.

    `controller` is its address, `epoch` the controller epoch, `epoch_version` the dataVersion of `/controller_epoch`,
    which fences every write.
    """

    controller: BrokerEndpoint
    epoch: int
    epoch_version: int
    brokers: dict[int, BrokerRegistration] = field(factory=dict)
    """The brokers with a usable registration, shutting down or not: the controller has an address for each."""

    unusable: dict[int, facts.BrokerUnusable] = field(factory=dict)
    """The brokers with a registration that cannot be used. An earlier one of the incarnation stays in `brokers`."""

    shutting_down: dict[int, None] = field(factory=dict)
    topics: dict[str, KnownTopic] = field(factory=dict)
    topic_names: dict[str, str] = field(factory=dict)
    """The names of topics by id."""

    closed_topics: dict[str, None] = field(factory=dict)
    """Topics with a znode that an ACL keeps us from reading or mending. No watch reports when that ends."""

    min_isrs: dict[str, int] = field(factory=dict)
    """The min.insync.replicas of topics; a topic without an entry has the value of the controller's own setting.

    On Kafka's brokers, topics inherit theirs instead, as soon as one has told it.
    """

    config_changes: frozenset[str] = frozenset()
    """The existing notifications of changed settings that have been handled."""

    leadership: dict[TopicPartition, LeaderAndIsr] = field(factory=dict)
    _phases: Phases = field(init=False, default=Factory(lambda self: Phases(self.topics), takes_self=True))
    partition_phases: PartitionPhases = field(
        init=False, default=Factory(lambda self: PartitionPhases(self._phases), takes_self=True)
    )
    replica_phases: ReplicaPhases = field(
        init=False, default=Factory(lambda self: ReplicaPhases(self._phases), takes_self=True)
    )
    reassigning: dict[TopicPartition, ReassignmentIdentity] = field(factory=dict)
    """The partitions being reassigned. An override keeps the identity."""

    deletions: dict[str, None] = field(factory=dict)
    """The topics being deleted. Their partitions have no leader and are not being reassigned."""

    held_up: dict[str, None] = field(factory=dict)
    """The topics being deleted of which a broker was dead, or failed to delete its replica."""

    strays: Strays = field(factory=Strays)
    failures: ReplicaFailures = field(factory=ReplicaFailures)
    """The replicas of live brokers that failed to carry out an order."""

    config: ControllerConfig = Factory(lambda self: ControllerConfig(self.controller.id), takes_self=True)
    """The settings that the controller was started with."""

    kafka: KafkaBrokers = field(factory=KafkaBrokers)
    closed: Closed = field(factory=Closed)
    rollouts: Rollouts = field(factory=Rollouts)

    _partitions: dict[str, tuple[TopicPartition, ...]] = field(factory=dict)
    """By topic. Dictionaries keyed by partition use these same objects as keys."""

    _held: HeldPartitions = field(factory=HeldPartitions)
    """Without the partitions of topics being deleted."""

    _waiting: frozenset[Replica] | None = None

    # --- questions ----------------------------------------------------------------------------------------------

    def assignment(self, tp: TopicPartition) -> ReplicaAssignment:
        """Return the assignment of a partition, an empty one if it is unknown."""
        return assignment_of(self.topics, tp)

    def topic_id(self, name: str) -> str:
        """Return the id of a known topic, as messages carry it."""
        return self.topics[name].znode.topic_id or ""

    def min_isr(self, topic: str) -> int:
        """Return the ISR size that a topic requires for acks=all."""
        return self.min_isrs.get(topic, self.config.min_insync_replicas)

    def partitions(self, names: Iterable[str] | None = None) -> list[TopicPartition]:
        """Return all partitions, or those of the known topics among `names`."""
        wanted = self._partitions if names is None else names
        return list(chain.from_iterable([self._partitions.get(name, ()) for name in wanted]))

    def partitions_on(self, broker_ids: Iterable[int]) -> list[TopicPartition]:
        """Return the partitions with a replica on any of these brokers, except those of topics being deleted."""
        return list(dict.fromkeys(chain.from_iterable(map(self._held.on, broker_ids))))

    def led_by(self, broker_id: int, most: int) -> int:
        """Return how many partitions a broker leads, up to `most`."""
        led = (self.leadership.get(tp) for tp in self._held.on(broker_id))
        return sum(1 for _ in islice((one for one in led if one is not None and one.leader == broker_id), most))

    def brokers_assigned(self) -> list[int]:
        """Return the ids of the brokers that replicas are assigned to, alive or not."""
        return self._held.brokers()

    def replica_counts(self) -> dict[int, int]:
        """Return the number of replicas assigned to each broker, alive or not, except of topics being deleted."""
        return self._held.sizes()

    def is_registered(self, broker_id: int, broker_epoch: int) -> bool:
        """Return whether a broker is registered under exactly this epoch."""
        known = self.brokers.get(broker_id) or self.unusable.get(broker_id)
        return known is not None and known.epoch == broker_epoch

    def is_unaddressable(self, broker_id: int) -> bool:
        """Return whether a broker is alive, but the controller has never had its address."""
        return broker_id in self.unusable and broker_id not in self.brokers

    def is_online(self, tp: TopicPartition, broker_id: int) -> bool:
        """Return whether a replica can lead: it can follow, has not failed, and its broker is not shutting down."""
        failure = self.failures.get((tp, broker_id))
        is_able = broker_id not in self.shutting_down and self.is_served(tp, broker_id)
        return is_able and (failure is None or not failure.keeps_from_leading)

    def is_served(self, tp: TopicPartition, broker_id: int) -> bool:
        """Return whether a replica can follow: its broker is registered and can, and the log is usable and its own."""
        failure = self.failures.get((tp, broker_id))
        is_able = broker_id in self.brokers and (tp, broker_id) not in self.waiting
        return is_able and (failure is None or not failure.keeps_from_following)

    @property
    def waiting(self) -> frozenset[Replica]:
        """Replicas on brokers of Kafka's that may still have the log of an earlier topic: see `namesakes`."""
        if self._waiting is None:
            found = filter(self.has_namesake, self.strays if self.config.kafka else ())
            self._waiting = frozenset([stray.replica for stray in found])
        return self._waiting

    def has_namesake(self, stray: Stray) -> bool:
        """Return whether the name of a stray's topic is now that of another topic."""
        return stray.topic in self.topics and self.topic_id(stray.topic) != stray.topic_id

    def online(self, tp: TopicPartition, replicas: Iterable[int]) -> tuple[int, ...]:
        """Return those of a partition's `replicas` that are online, in order."""
        able = tuple([r for r in replicas if r in self.brokers and r not in self.shutting_down])
        return tuple(r for r in able if self.is_online(tp, r)) if self.failures or self.waiting else able

    def offline(self, tp: TopicPartition, replicas: Iterable[int]) -> tuple[int, ...]:
        """Return those of a partition's `replicas` that are neither online nor on an unaddressable broker, in order."""
        online = self.online(tp, replicas)
        return tuple([r for r in replicas if r not in online and not self.is_unaddressable(r)])

    def in_phase(self, *phases: PartitionPhase) -> list[TopicPartition]:
        """Return the partitions in one of these states."""
        return self.partition_phases.those_in(phases)

    def able_brokers(self) -> list[int]:
        """Return the ids of the brokers that may be given replicas: alive and not shutting down."""
        return [broker_id for broker_id in sorted(self.brokers) if broker_id not in self.shutting_down]

    def live_brokers(self) -> tuple[BrokerEndpoint, ...]:
        """Return the complete list of live brokers, shutting down or not, in the form in which it is published."""
        return tuple(BrokerEndpoint(b.id, b.host, b.port, b.rack) for _, b in sorted(self.brokers.items()))

    def describe(self, tp: TopicPartition, *, leadership: LeaderAndIsr | None = None) -> PartitionState:
        """Return a partition's state as published; a leadership about to be committed replaces the known one.

        Raises KeyError if the partition has no leadership yet and none is given.
        """
        assignment = self.assignment(tp)
        offline = self.offline(tp, assignment.replicas)
        return PartitionState.of(tp, self.topic_id(tp.topic), assignment, leadership or self.leadership[tp], offline)

    # --- the only mutator ---------------------------------------------------------------------------------------

    def apply(self, fact: Fact) -> None:
        """Take a fact that was committed or observed."""
        if isinstance(fact, facts.PartitionFact):
            self._partitions_changed(fact)
        elif isinstance(fact, facts.TopicFact):
            self._topic_changed(fact)
        elif isinstance(fact, facts.BrokerFact):
            self._broker_changed(fact)
        elif isinstance(fact, facts.StrayFact):
            self._waiting = None
            self.strays.take(fact, self.brokers)
            self.closed.take(fact)
        elif isinstance(fact, facts.KafkaFact):
            self.kafka.take(fact)
        elif isinstance(fact, FailureFact):
            self.failures.take(fact)
        else:
            self._other_changed(fact)

    def compact(self) -> None:
        """Let what has become smaller take less memory: dictionaries keep the size that they once had."""
        shrink(self.leadership)
        shrink(self._phases.rows)
        self._held.compact()

    def _partitions_changed(self, fact: facts.PartitionFact) -> None:
        match fact:
            case facts.LeadershipsWritten():
                self.leadership.update(zip(fact.tps, fact.leaderships, strict=True))
            case facts.PartitionsMoved():
                self._phases.move_partitions(fact.tps, fact.phase)
            case facts.ReplicasMoved():
                if fact.phase is ReplicaPhase.DELETION_INELIGIBLE:
                    self.held_up.update(dict.fromkeys(tp.topic for tp in fact.tps))
                self._phases.move_replicas(fact.tps, fact.brokers, fact.phase)
            case facts.PartitionsFound(leaderships=states):
                self.leadership.update(zip(compress(fact.tps, states), filter(None, states), strict=True))
                self._phases.put_all(fact.tps, fact.rows)

    def _broker_changed(self, fact: facts.BrokerFact) -> None:
        self.rollouts.stir()
        if isinstance(fact, facts.BrokerRegistered):
            self.brokers[fact.registration.id] = fact.registration
            self.unusable.pop(fact.registration.id, None)
        elif isinstance(fact, facts.BrokerUnusable):
            self.unusable[fact.broker_id] = fact
        elif isinstance(fact, facts.BrokerShuttingDown):
            self.shutting_down[fact.broker_id] = None
        elif isinstance(fact, facts.BrokersKeptOut):
            self.closed.take(fact)
        else:
            self.failures.forget_broker(fact.broker_id)
            self.strays.forget_broker(fact.broker_id)
            self.kafka.forget(fact.broker_id)
            self.brokers.pop(fact.broker_id, None)
            self.unusable.pop(fact.broker_id, None)
            self.shutting_down.pop(fact.broker_id, None)

    def _topic_changed(self, fact: facts.TopicFact) -> None:
        self._waiting = None
        match fact:
            case facts.TopicWritten():
                self._topic_written(fact)
            case facts.TopicClosed():
                self.closed_topics[fact.name] = None
            case facts.TopicGone():
                self._topic_gone(fact)
            case facts.DeletionStarted():
                self._deletion_started(fact.topic)
            case facts.MinIsrRead():
                self.min_isrs[fact.topic] = fact.min_isr

    def _other_changed(self, fact: facts.OtherFact) -> None:
        match fact:
            case RolloutFact() | RolloutsSettled():
                self.rollouts.take(fact)
            case facts.NotificationsKept() | facts.MarkersKept():
                self.closed.take(fact)
            case facts.ConfigChangesSeen():
                self.config_changes = fact.names
            case facts.ReassignmentIdentified():
                if fact.tp in self.reassigning:
                    self.reassigning[fact.tp] = fact.identity
            case _:
                assert_never(fact)

    def _topic_written(self, fact: facts.TopicWritten) -> None:
        self.closed_topics.pop(fact.name, None)
        known = self.topics.get(fact.name)
        self.topics[fact.name] = KnownTopic(fact.znode, fact.version)
        if known is None:
            self._index(fact.name, fact.znode.partitions)
        else:
            self.topic_names.pop(known.znode.topic_id or "", None)
            self._reindex(fact.name, known.znode.partitions, fact.znode.partitions)
        self.topic_names[self.topic_id(fact.name)] = fact.name

    def _topic_gone(self, fact: facts.TopicGone) -> None:
        known = self.topics.pop(fact.name, None)
        self.closed_topics.pop(fact.name, None)
        self.min_isrs.pop(fact.name, None)
        if known is not None:
            self.topic_names.pop(known.znode.topic_id or "", None)
            if fact.name not in self.deletions:
                self._exclude(fact.name, known)
            for tp in self._partitions.pop(fact.name, ()):
                self._phases.rows.pop(tp, None)
                for broker_id in known.znode.partitions[tp.partition].replicas if self.failures else ():
                    self.failures.forget((tp, broker_id))
        self.deletions.pop(fact.name, None)
        self.held_up.pop(fact.name, None)

    def _deletion_started(self, name: str) -> None:
        self.deletions[name] = None
        self._exclude(name, self.topics[name])

    def _exclude(self, name: str, topic: KnownTopic) -> None:
        """Forget who leads the partitions of a topic, which moves they are in, and who holds them."""
        self.rollouts.stir_topic(name)
        tps = self._partitions.get(name, ())
        for known in (self.leadership, self.reassigning):
            for tp in tps if known else ():
                known.pop(tp, None)
        replicas = [assignment.replicas for assignment in topic.znode.partitions.values()]
        self._held.remove_topic(name, set(chain.from_iterable(replicas)))

    def _index(self, name: str, assigned: Mapping[int, ReplicaAssignment]) -> None:
        tps = tuple(TopicPartition.of_topic(name, assigned))
        if tps:
            self._partitions[name] = tps
        self._held.add_all(tps, [assignment.replicas for assignment in assigned.values()])
        for tp, assignment in zip(tps, assigned.values(), strict=True):
            if assignment.adding_replicas or assignment.removing_replicas:
                self.reassigning.setdefault(tp, UNIDENTIFIED)

    def _reindex(
        self, name: str, before: Mapping[int, ReplicaAssignment], after: Mapping[int, ReplicaAssignment]
    ) -> None:
        tps = self._partitions.get(name, ())
        if list(before) != list(after):
            known = dict(zip(before, tps, strict=True))
            for number in before.keys() - after.keys():
                self._reindex_partition(known[number], before[number], UNASSIGNED)
            self._partitions[name] = tps = tuple([known.get(n) or TopicPartition(name, n) for n in after])
            if not after:
                del self._partitions[name]
            before = {number: before.get(number, UNASSIGNED) for number in after}
        # What has not changed is mostly the same object.
        others = list(map(is_not, before.values(), after.values()))
        for tp, old, new in compress(zip(tps, before.values(), after.values(), strict=True), others):
            if old != new:
                self._reindex_partition(tp, old, new)

    def _reindex_partition(self, tp: TopicPartition, old: ReplicaAssignment, new: ReplicaAssignment) -> None:
        for broker_id in old.replicas:
            if broker_id not in new.replicas:
                self._held.remove(broker_id, tp)
                self.failures.forget((tp, broker_id))
        for broker_id in new.replicas:
            if broker_id not in old.replicas:
                self._held.add(broker_id, tp)
        self._phases.reassign(tp, old.replicas, new.replicas)
        if new.is_being_reassigned:
            self.reassigning.setdefault(tp, UNIDENTIFIED)
        else:
            self.reassigning.pop(tp, None)
            self.rollouts.stir(tp)
        if new is UNASSIGNED:
            self.leadership.pop(tp, None)
            self._phases.rows.pop(tp, None)
