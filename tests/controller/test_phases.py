"""The compact tables of a controller's memory behave like plain dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given, settings, strategies as st
from structlog.testing import capture_logs

from controller.model.held import HeldPartitions
from controller.model.known_topics import KnownTopic
from controller.model.phases import PartitionPhases, Phases, ReplicaPhases
from controller.model.state_machines import PARTITION_TRANSITIONS, REPLICA_TRANSITIONS, PartitionPhase, ReplicaPhase
from transport.metadata import ReplicaAssignment, TopicPartition
from transport.store.formats import TopicZnode

tps = st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 1))
brokers = st.integers(1, 4)
replicas = st.lists(brokers, unique=True, max_size=3).map(tuple)
partition_phases = st.sampled_from(PartitionPhase)
replica_phases = st.sampled_from([phase for phase in ReplicaPhase if phase is not ReplicaPhase.NON_EXISTENT])


@define
class Tables:
    """The tables, and dictionaries with the same contents."""

    topics: dict[str, KnownTopic] = field(factory=dict)
    phases: Phases = field(init=False)
    partitions: PartitionPhases = field(init=False)
    replicas: ReplicaPhases = field(init=False)
    plain_partitions: dict[TopicPartition, PartitionPhase] = field(factory=dict)
    plain_replicas: dict[tuple[TopicPartition, int], ReplicaPhase] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.phases = Phases(self.topics)
        self.partitions, self.replicas = PartitionPhases(self.phases), ReplicaPhases(self.phases)

    def assign(self, tp: TopicPartition, new: tuple[int, ...]) -> None:
        """Change the replicas of a partition."""
        known = dict(self.topics[tp.topic].znode.partitions) if tp.topic in self.topics else {}
        old = known[tp.partition].replicas if tp.partition in known else ()
        known[tp.partition] = ReplicaAssignment(new)
        self.topics[tp.topic] = KnownTopic(TopicZnode(known), 0)
        self.phases.reassign(tp, old, new)
        for broker_id in set(old) - set(new):
            self.plain_replicas.pop((tp, broker_id), None)

    def set_partition(self, tp: TopicPartition, phase: PartitionPhase) -> None:
        """Set the state of a partition."""
        self.partitions[tp] = self.plain_partitions[tp] = phase

    def set_replica(self, tp: TopicPartition, broker_id: int, phase: ReplicaPhase) -> None:
        """Set the state of a replica."""
        self.replicas[tp, broker_id] = self.plain_replicas[tp, broker_id] = phase

    def forget_partition(self, tp: TopicPartition) -> None:
        """Forget the state of a partition."""
        assert self.partitions.pop(tp, None) is self.plain_partitions.pop(tp, None)

    def forget_replica(self, tp: TopicPartition, broker_id: int) -> None:
        """Forget the state of a replica."""
        assert self.replicas.pop((tp, broker_id), None) is self.plain_replicas.pop((tp, broker_id), None)

    def move_partition(self, tp: TopicPartition, to: PartitionPhase) -> None:
        """Let a partition enter a state."""
        before = self.plain_partitions.get(tp, PartitionPhase.NON_EXISTENT)
        is_legal = to in PARTITION_TRANSITIONS[before]
        self.partitions.move(tp, to)
        if is_legal:
            self.plain_partitions[tp] = to

    def move_replica(self, tp: TopicPartition, broker_id: int, to: ReplicaPhase) -> None:
        """Let a replica enter a state."""
        before = self.plain_replicas.get((tp, broker_id), ReplicaPhase.NON_EXISTENT)
        is_legal = to in REPLICA_TRANSITIONS[before]
        self.replicas.move((tp, broker_id), to)
        if is_legal and to is ReplicaPhase.NON_EXISTENT:
            self.plain_replicas.pop((tp, broker_id), None)
        elif is_legal:
            self.plain_replicas[tp, broker_id] = to

    def move_partitions(self, tps: list[TopicPartition], to: PartitionPhase) -> None:
        """Let partitions enter a state together."""
        before = [self.plain_partitions.get(tp, PartitionPhase.NON_EXISTENT) for tp in tps]
        are_legal = all(to in PARTITION_TRANSITIONS[phase] for phase in before)
        assert self.partitions.move_all(tps, to) is are_legal
        if are_legal:
            self.plain_partitions.update(dict.fromkeys(tps, to))

    def move_replicas(self, moved: dict[TopicPartition, tuple[int, ...]], to: ReplicaPhase) -> None:
        """Let replicas of partitions enter a state together."""
        replicas = [(tp, broker_id) for tp, brokers in moved.items() for broker_id in brokers]
        before = [self.plain_replicas.get(replica, ReplicaPhase.NON_EXISTENT) for replica in replicas]
        are_legal = all(to in REPLICA_TRANSITIONS[phase] for phase in before)
        if self.replicas.move_all(list(moved), list(moved.values()), to):
            assert are_legal
            for replica in replicas:
                self.plain_replicas[replica] = to
                if to is ReplicaPhase.NON_EXISTENT:
                    del self.plain_replicas[replica]
        else:
            are_assigned = all(broker_id in self.phases.replicas(tp) for tp, broker_id in replicas)
            assert not (are_assigned and are_legal and all(tp in self.plain_partitions for tp in moved))

    def compare(self, tps: list[TopicPartition], phase: ReplicaPhase) -> None:
        """Compare the states of the replicas of partitions."""
        replicas = [(tp, broker_id) for tp in tps for broker_id in self.phases.replicas(tp)]
        found = [phase for tp in tps for phase in self.replicas.of(tp)]
        assert found == [self.plain_replicas.get(replica) for replica in replicas]
        if all(self.phases.replicas(tp) for tp in tps):
            assert self.replicas.are_all(tps, phase) is (set(found) <= {phase})

    def check(self) -> None:
        """Compare the tables with the dictionaries."""
        assert dict(self.partitions) == self.plain_partitions
        assert list(self.partitions.items()) == list(dict(self.partitions).items())
        assert dict(self.replicas) == self.plain_replicas
        assert (len(self.partitions), len(self.replicas)) == (len(self.plain_partitions), len(self.plain_replicas))
        for phase in PartitionPhase:
            found = [tp for tp, each in self.plain_partitions.items() if each is phase]
            assert sorted(self.partitions.those_in((phase,))) == sorted(found)
        rows = list(self.phases.rows.values())
        assert len(set(map(id, rows))) == len(set(rows)), "equal rows are one object"


Change = Callable[[Tables], object]


def change(name: str, *values: st.SearchStrategy[Any]) -> st.SearchStrategy[Change]:
    return st.tuples(*values).map(lambda given: lambda tables: getattr(tables, name)(*given))


changes = st.one_of(
    change("assign", tps, replicas),
    change("set_partition", tps, partition_phases),
    change("set_replica", tps, brokers, replica_phases),
    change("forget_partition", tps),
    change("forget_replica", tps, brokers),
    change("move_partition", tps, partition_phases),
    change("move_replica", tps, brokers, st.sampled_from(ReplicaPhase)),
    change("move_partitions", st.lists(tps, unique=True), partition_phases),
    change("move_replicas", st.dictionaries(tps, replicas), st.sampled_from(ReplicaPhase)),
    change("compare", st.lists(tps), replica_phases),
)


@given(st.lists(changes, max_size=25))
def test_states_are_those_of_plain_dictionaries(made: list[Change]) -> None:
    tables = Tables()
    with capture_logs():  # of transitions that are refused
        for each in made:
            each(tables)
            tables.check()


def test_a_partition_or_replica_without_a_state_has_no_key() -> None:
    tables, tp = Tables(), TopicPartition("a", 0)
    tables.assign(tp, (1, 2))
    tables.set_replica(tp, 1, ReplicaPhase.NEW)
    assert tp not in tables.partitions
    assert (tp, 1) in tables.replicas
    assert (tp, 2) not in tables.replicas
    with pytest.raises(KeyError):
        tables.partitions[tp]
    with pytest.raises(KeyError):
        del tables.replicas[tp, 2]
    tables.forget_replica(tp, 1)
    assert not tables.phases.rows


def test_a_replica_keeps_its_state_when_it_is_assigned() -> None:
    tables, tp = Tables(), TopicPartition("a", 0)
    tables.assign(tp, (1,))
    tables.set_replica(tp, 1, ReplicaPhase.ONLINE)
    tables.set_replica(tp, 2, ReplicaPhase.NEW)
    tables.assign(tp, (2, 1))
    tables.check()


def test_partitions_keep_their_order() -> None:
    tables, first, second = Tables(), TopicPartition("b", 0), TopicPartition("a", 0)
    for phase in (PartitionPhase.NEW, PartitionPhase.ONLINE):
        for tp in (first, second):
            tables.set_partition(tp, phase)
    assert list(tables.partitions) == tables.partitions.those_in((PartitionPhase.ONLINE,)) == [first, second]


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 2), st.integers(0, 5)), max_size=60), st.sets(st.integers(0, 60))
)
def test_a_broker_holds_partitions_in_the_order_in_which_they_came(
    changes: list[tuple[bool, int, int]], looks: set[int]
) -> None:
    held, plain = HeldPartitions(), {1: dict[TopicPartition, None](), 2: dict[TopicPartition, None]()}
    for turn, (is_added, broker_id, number) in enumerate(changes):
        tp = TopicPartition("orders", number)
        if not is_added:
            held.remove_all([tp], [(broker_id,)])
            plain[broker_id].pop(tp, None)
        elif tp not in plain[broker_id]:
            held.add(broker_id, tp)
            plain[broker_id][tp] = None
        if turn in looks:
            assert held.brokers() == [id_ for id_ in plain if plain[id_]]
    assert {id_: held.on(id_) for id_ in plain} == {id_: list(tps) for id_, tps in plain.items()}
    assert held.on(3) == []


def test_replicas_that_are_not_assigned_are_not_moved_together() -> None:
    tables = Tables()
    tp = TopicPartition("a", 0)
    tables.assign(tp, (1, 2))
    assert not tables.replicas.move_all([tp], [(1, 3)], ReplicaPhase.NEW)
    assert tables.replicas.move_all([tp], [(1, 2)], ReplicaPhase.NEW)
    assert dict(tables.replicas) == dict.fromkeys([(tp, 1), (tp, 2)], ReplicaPhase.NEW)
