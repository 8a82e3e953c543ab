"""Counts derived from facts equal those of a full scan."""

from __future__ import annotations

from collections import Counter

import pytest
from attrs import evolve
from hypothesis import given, strategies as st
from structlog.testing import capture_logs

from controller.model.context import ControllerContext
from controller.model.facts import (
    DeletionStarted,
    Fact,
    LeadershipsWritten,
    MinIsrRead,
    PartitionsFound,
    PartitionsMoved,
    TopicGone,
    TopicWritten,
)
from controller.model.notable import Notable, judge
from controller.model.state_machines import PartitionPhase
from controller.monitoring.partition_counts import PartitionCounts
from tests.controller.conftest import ENDPOINT
from transport.metadata import NO_LEADER, LeaderAndIsr, ReplicaAssignment, TopicPartition
from transport.store.formats import TopicZnode

TOPICS = ("a", "b")
tps = st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 2))
brokers = st.lists(st.integers(1, 4), min_size=1, max_size=4, unique=True).map(tuple)


@st.composite
def assignments(draw: st.DrawFn) -> ReplicaAssignment:
    replicas = draw(brokers)
    adding = draw(st.integers(0, len(replicas) - 1))
    return ReplicaAssignment(replicas, replicas[:adding], ())


@st.composite
def leaderships(draw: st.DrawFn) -> LeaderAndIsr:
    isr = draw(brokers)
    return LeaderAndIsr(draw(st.sampled_from((NO_LEADER, *isr))), 0, isr, 0, 1)


changes: st.SearchStrategy[Fact | None] = st.one_of(
    st.none(),
    st.builds(
        TopicWritten,
        st.sampled_from(TOPICS),
        st.builds(TopicZnode, st.dictionaries(st.integers(0, 2), assignments()), st.just("id")),
        st.just(0),
    ),
    st.builds(TopicGone, st.sampled_from(TOPICS)),
    st.builds(DeletionStarted, st.sampled_from(TOPICS)),
    st.builds(MinIsrRead, st.sampled_from(TOPICS), st.integers(1, 3)),
    st.builds(LeadershipsWritten, tps.map(lambda tp: [tp]), leaderships().map(lambda leadership: [leadership])),
    st.builds(PartitionsMoved, tps.map(lambda tp: [tp]), st.sampled_from(PartitionPhase)),
    st.builds(
        PartitionsFound,
        tps.map(lambda tp: [tp]),
        (st.none() | leaderships()).map(lambda leadership: [leadership]),
        st.sampled_from(PartitionPhase).map(lambda phase: [(phase, ())]),
    ),
)


def is_about_what_exists(context: ControllerContext, fact: Fact) -> bool:
    match fact:
        case LeadershipsWritten(tps=[tp]) | PartitionsFound(tps=[tp]) | PartitionsMoved(tps=[tp]):
            return bool(context.assignment(tp).replicas)
        case DeletionStarted(topic=topic) | MinIsrRead(topic=topic):
            return topic in context.topics
        case _:
            return True


@pytest.mark.requirement("D11")
@given(st.lists(changes, max_size=40), st.integers(1, 2))
def test_counting_on_equals_counting_again(sequence: list[Fact | None], min_isr: int) -> None:
    context = ControllerContext(ENDPOINT, 1, 1)
    context.config = evolve(context.config, min_insync_replicas=min_isr)
    counts = PartitionCounts(context)
    known: set[TopicPartition] = set()
    with capture_logs():  # of transitions that are refused
        for fact in sequence:
            if fact is None:
                counts.refresh()
            elif is_about_what_exists(context, fact):
                counts.note([fact])
                context.apply(fact)
            known |= set(context.leadership) | set(context.partition_phases) | set(context.partitions())
    counts.refresh()
    judged = {tp: judge(context, tp) for tp in known}
    assert counts.notable == {tp: kinds for tp, kinds in judged.items() if kinds}
    full = Counter(kind for kinds in judged.values() for kind in kinds)
    assert {kind: counts.count(kind) for kind in Notable} == {kind: full[kind] for kind in Notable}


@pytest.mark.parametrize(
    ("assignment", "leader", "isr", "expected"),
    [
        (ReplicaAssignment((1, 2)), 1, (1, 2), Notable.NOTHING),
        (ReplicaAssignment((1, 2)), 2, (1, 2), Notable.IMBALANCED),
        (ReplicaAssignment((1, 2)), 1, (1,), Notable.UNDER_REPLICATED | Notable.UNDER_MIN_ISR),
        (ReplicaAssignment((1, 2, 3)), 1, (1, 2), Notable.UNDER_REPLICATED),
        (ReplicaAssignment((3, 1, 2), (3,), ()), 3, (1, 2), Notable.NOTHING),
    ],
)
def test_what_is_notable(assignment: ReplicaAssignment, leader: int, isr: tuple[int, ...], expected: Notable) -> None:
    context, tp = ControllerContext(ENDPOINT, 1, 1), TopicPartition("a", 0)
    context.config = evolve(context.config, min_insync_replicas=2)
    context.apply(TopicWritten("a", TopicZnode({0: assignment}, "id"), 0))
    context.apply(LeadershipsWritten([tp], [LeaderAndIsr(leader, 0, isr, 0, 1)]))
    assert judge(context, tp) == expected
