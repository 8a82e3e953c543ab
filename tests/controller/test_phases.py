"""The compact tables of a controller's memory behave like plain dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given, settings, strategies as st
from structlog.testing import capture_logs

from controller.model.held import HeldPartitions
from controller.model.known_topics import KnownTopic, assignment_of
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

    def find(self, tp: TopicPartition, partition: PartitionPhase | None, found: dict[int, ReplicaPhase]) -> None:
        """Set the states of a partition and of some of its replicas."""
        replicas = self.replicas_of(tp)
        self.phases.put_all([tp], [(partition, tuple(map(found.get, replicas)))])
        self.plain_partitions.pop(tp, None)
        if partition is not None:
            self.plain_partitions[tp] = partition
        for broker_id in replicas:
            self.plain_replicas.pop((tp, broker_id), None)
        self.plain_replicas |= {(tp, r): found[r] for r in replicas if r in found}

    def move_partitions(self, tps: list[TopicPartition], to: PartitionPhase) -> None:
        """Let partitions enter a state."""
        self.phases.move_partitions(tps, to)
        for tp in tps:
            if to in PARTITION_TRANSITIONS[self.plain_partitions.get(tp, PartitionPhase.NON_EXISTENT)]:
                self.plain_partitions[tp] = to

    def move_replicas(self, moved: dict[TopicPartition, tuple[int, ...]], to: ReplicaPhase) -> None:
        """Let replicas of partitions enter a state."""
        self.phases.move_replicas(list(moved), list(moved.values()), to)
        for replica in [(tp, broker_id) for tp, brokers in moved.items() for broker_id in brokers]:
            before = self.plain_replicas.pop(replica, ReplicaPhase.NON_EXISTENT)
            is_legal = replica[1] in self.replicas_of(replica[0]) and to in REPLICA_TRANSITIONS[before]
            after = to if is_legal else before
            self.plain_replicas |= {} if after is ReplicaPhase.NON_EXISTENT else {replica: after}

    def replicas_of(self, tp: TopicPartition) -> tuple[int, ...]:
        """Return the replicas of a partition."""
        return assignment_of(self.topics, tp).replicas

    def compare(self, tps: list[TopicPartition], phase: ReplicaPhase) -> None:
        """Compare the states of the replicas of partitions."""
        replicas = [(tp, broker_id) for tp in tps for broker_id in self.replicas_of(tp)]
        found = [phase for tp in tps for phase in self.replicas.of(tp)]
        assert found == [self.plain_replicas.get(replica) for replica in replicas]
        if all(map(self.replicas_of, tps)):
            assert self.replicas.are_all(tps, phase) is (set(found) <= {phase})
        for broker_id in range(1, 5):
            states = [self.plain_replicas.get((tp, broker_id)) for tp in tps]
            in_phase = [tp for tp, state in zip(tps, states, strict=True) if state is phase]
            assert self.replicas.those_in(phase, broker_id, tps) == in_phase
            assert self.replicas.those_on(broker_id, tps) == list(compress(tps, states))

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
    change("find", tps, st.none() | partition_phases, st.dictionaries(brokers, replica_phases)),
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
    tables.move_replicas({tp: (1,)}, ReplicaPhase.NEW)
    assert tp not in tables.partitions
    assert (tp, 1) in tables.replicas
    assert (tp, 2) not in tables.replicas
    with pytest.raises(KeyError):
        tables.partitions[tp]
    with pytest.raises(KeyError):
        tables.replicas[tp, 2]
    tables.assign(tp, (2,))
    assert not tables.phases.rows


def test_partitions_keep_their_order() -> None:
    tables, first, second = Tables(), TopicPartition("b", 0), TopicPartition("a", 0)
    for phase in (PartitionPhase.NEW, PartitionPhase.ONLINE):
        for tp in (first, second):
            tables.move_partitions([tp], phase)
    assert list(tables.partitions) == tables.partitions.those_in((PartitionPhase.ONLINE,)) == [first, second]


Held = tuple[str, int, TopicPartition]

changes_of_what_is_held = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "remove", "remove topic"]),
        st.integers(1, 2),
        st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 4)),
    ),
    max_size=60,
)


@settings(max_examples=200)
@given(changes_of_what_is_held, st.sets(st.integers(0, 60)))
def test_a_broker_holds_partitions_in_the_order_in_which_they_came(changes: list[Held], looks: set[int]) -> None:
    held, plain = HeldPartitions(), {1: dict[TopicPartition, None](), 2: dict[TopicPartition, None]()}
    for turn, (change, broker_id, tp) in enumerate(changes):
        if change == "remove":
            held.remove(broker_id, tp)
            plain[broker_id].pop(tp, None)
        elif change == "remove topic":
            held.remove_topic(tp.topic, [id_ for id_, tps in plain.items() if any(of.topic == tp.topic for of in tps)])
            plain = {id_: dict.fromkeys(of for of in tps if of.topic != tp.topic) for id_, tps in plain.items()}
        elif tp not in plain[broker_id]:
            held.add(broker_id, tp)
            plain[broker_id][tp] = None
        if turn in looks:
            assert held.brokers() == [id_ for id_ in plain if plain[id_]]
    assert {id_: held.on(id_) for id_ in plain} == {id_: list(tps) for id_, tps in plain.items()}
    assert held.on(3) == []


def test_replicas_that_are_not_assigned_do_not_enter_a_state() -> None:
    tables, tp = Tables(), TopicPartition("a", 0)
    tables.assign(tp, (1, 2))
    with capture_logs() as logs:
        tables.phases.move_replicas([tp], [(1, 3)], ReplicaPhase.NEW)
    assert [(entry["event"], entry["broker"]) for entry in logs] == [("illegal replica transition", 3)]
    assert dict(tables.replicas) == {(tp, 1): ReplicaPhase.NEW}
