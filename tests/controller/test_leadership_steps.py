"""Elections and shrinks of many partitions together are those of one partition at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Final

import pytest
from hypothesis import given, strategies as st

from controller.config import ControllerConfig
from controller.handlers import leadership
from controller.model import elections, facts
from controller.model.batches import LeadershipSteps, batch_of
from controller.model.context import ControllerContext
from controller.model.rounds import (
    Change,
    ChangeOutcome,
    Publication,
    Rounds,
    Step,
    TellLeaderAndIsr,
    TellMetadata,
)
from controller.model.state_machines import PartitionPhase, ReplicaPhase
from tests.controller.conftest import ENDPOINT
from tests.controller.failures import log_lost
from tests.controller.single_steps import creation_step, election_steps, leave_step
from tests.kit.told import singly
from transport.dynamic_configs import UNCLEAN_LEADER_ELECTION_ENABLE
from transport.metadata import BrokerRegistration, LeaderAndIsr, LeaderRecoveryState, ReplicaAssignment, TopicPartition
from transport.store import formats, paths
from transport.store.formats import TopicZnode
from transport.store.protocol import Stat, Znode

BROKERS: Final = range(1, 6)
TOPICS: Final = ("a", "b")
STAT: Final = Stat(1, 1, 0, 0, 0)
STRATEGIES: Final = (elections.offline, elections.preferred, elections.reassign, elections.controlled_shutdown)
PHASES: Final = (PartitionPhase.ONLINE, PartitionPhase.OFFLINE)


@st.composite
def contexts(draw: st.DrawFn) -> ControllerContext:
    """Draw a context: two topics of some partitions, brokers of which some are not able, and odd replicas."""
    context = ControllerContext(ENDPOINT, 7, 3, config=ControllerConfig(ENDPOINT.id))
    some = st.sets(st.sampled_from(BROKERS))
    for broker_id in sorted(draw(st.sets(st.sampled_from(BROKERS), min_size=2))):
        context.apply(facts.BrokerRegistered(BrokerRegistration(broker_id, "h", 1, broker_id)))
    for broker_id in sorted(draw(some)):
        context.apply(facts.BrokerShuttingDown(broker_id))
    for name in TOPICS:
        # Few replica sets and ISRs, so that many partitions are alike.
        sets = draw(st.lists(st.sampled_from([(1, 2, 3), (2, 3), (3, 4, 1), (5, 1), (4,)]), min_size=1, max_size=8))
        assignments = {number: ReplicaAssignment(replicas) for number, replicas in enumerate(sets)}
        context.apply(facts.TopicWritten(name, TopicZnode(assignments, f"id-{name}"), 0))
    for tp in context.partitions():
        _lead(draw, context, tp)
    return context


def _lead(draw: st.DrawFn, context: ControllerContext, tp: TopicPartition) -> None:
    replicas = context.assignment(tp).replicas
    isr = tuple(r for r in draw(st.permutations(replicas)) if draw(st.integers(0, 3)))
    leader = draw(st.sampled_from((*replicas, -1)))
    recovery = draw(st.sampled_from(LeaderRecoveryState))
    epochs = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    context.apply(facts.LeadershipsWritten([tp], [LeaderAndIsr(leader, epochs[0], isr, epochs[1], 6, recovery)]))
    context.apply(facts.PartitionsMoved([tp], PartitionPhase.NEW))
    context.apply(facts.PartitionsMoved([tp], draw(st.sampled_from(PHASES))))
    for broker_id in replicas:
        if draw(st.integers(0, 4)):
            context.apply(facts.ReplicasMoved.on(broker_id, [tp], ReplicaPhase.NEW))
            context.apply(facts.ReplicasMoved.on(broker_id, [tp], ReplicaPhase.ONLINE))
        if not draw(st.integers(0, 5)):
            context.apply(log_lost(tp, broker_id))
        if not draw(st.integers(0, 9)):
            context.strays.recalled[tp, broker_id] = None


def decided(rounds: Rounds[None]) -> Sequence[Step]:
    """Return the steps of a handler's first round, none if it has no round."""
    try:
        effect = next(rounds)
    except StopIteration:
        return []
    assert isinstance(effect, Change)
    return effect.steps


def replaced(
    context: ControllerContext, tps: Sequence[TopicPartition], gone: Sequence[int], settings: Mapping[str, str]
) -> Sequence[Step]:
    """Return the steps in which replicas on `gone` leave, having applied what comes before."""
    rounds = leadership.replace_offline(context, tps, gone)
    with suppress(StopIteration):
        effect = next(rounds)
        while not (isinstance(effect, Change) and effect.round == "leave"):
            if isinstance(effect, Change):
                for fact in batch_of(context, effect.steps).facts():
                    context.apply(fact)
            answer = [Znode(formats.encode_config(settings), STAT) for _ in getattr(effect, "paths", ())]
            effect = rounds.send(ChangeOutcome() if isinstance(effect, Change) else answer)
        return effect.steps
    return []


def singles(applied: Iterable[facts.Fact]) -> list[facts.Fact]:
    """Return facts about one partition or replica each."""
    return [one for fact in applied for one in _split(fact)]


def _split(fact: facts.Fact) -> Iterator[facts.Fact]:
    match fact:
        case facts.LeadershipsWritten():
            pairs = zip(fact.tps, fact.leaderships, strict=True)
            yield from (facts.LeadershipsWritten([tp], [leadership]) for tp, leadership in pairs)
        case facts.PartitionsMoved():
            yield from (facts.PartitionsMoved([tp], fact.phase) for tp in fact.tps)
        case facts.ReplicasMoved():
            yield from (facts.ReplicasMoved.on(broker_id, [tp], fact.phase) for tp, broker_id in fact.replicas)
        case _:
            yield fact


def told(publications: Iterable[Publication]) -> list[tuple[str, object]]:
    """Return what is told of each partition, in the order of each kind."""
    rows: list[tuple[str, object]] = []
    for publication in publications:
        if isinstance(publication, TellMetadata):
            rows += [("metadata", (publication.brokers, state)) for state in publication.partitions]
        elif isinstance(publication, TellLeaderAndIsr):
            rows += [("lead", one) for one in singly(publication) if one.brokers]
        else:
            rows += [("stop", one) for one in singly(publication)]
    return sorted(rows, key=lambda row: row[0])


def require_alike(context: ControllerContext, together: Sequence[Step], alone: Sequence[Step]) -> None:
    """Check steps that were decided together: each of them, all of them at once, and what becomes of the context."""
    assert len(together) == len(alone)
    for one, other in zip(together, alone, strict=True):
        assert (one.subjects, one.writes) == (other.subjects, other.writes)
        assert singles(one.facts) == singles(other.facts)
        assert told(one.publications) == told(other.publications)
    batch = batch_of(context, together)
    assert batch.subjects == tuple(tp for step in alone for tp in step.subjects)
    assert list(batch.groups) == [step.writes for step in alone]
    assert told(batch.publications()) == told(p for step in alone for p in step.publications)
    at_once, one_by_one = deepcopy(context), deepcopy(context)
    for fact in batch.facts():
        at_once.apply(fact)
    for step in alone:
        for fact in step.facts:
            one_by_one.apply(fact)
    assert at_once == one_by_one
    assert at_once.replica_phases == one_by_one.replica_phases
    if isinstance(batch, LeadershipSteps):
        assert batch.states() == [one_by_one.describe(tp) for tp in batch.subjects]


@given(contexts(), st.sampled_from(STRATEGIES), st.sets(st.sampled_from(TOPICS)))
def test_partitions_elected_together_are_elected_as_each_alone(
    context: ControllerContext, strategy: elections.Strategy, unclean: set[str]
) -> None:
    tps = context.partitions()
    steps = decided(leadership.elect(context, tps, strategy, unclean=unclean))
    require_alike(context, steps, election_steps(context, tps, strategy, unclean))


@given(contexts(), st.sets(st.sampled_from(BROKERS), min_size=1), st.booleans())
def test_replicas_that_leave_together_leave_as_each_alone(
    context: ControllerContext, gone: set[int], are_unclean: bool
) -> None:
    leaving = sorted(gone)
    tps = [tp for tp in context.partitions() if not gone.isdisjoint(context.assignment(tp).replicas)]
    steps = replaced(context, tps, leaving, {UNCLEAN_LEADER_ELECTION_ENABLE: str(are_unclean).lower()})
    first = [tp for tp in context.in_phase(PartitionPhase.OFFLINE) if tp in context.leadership]
    alone = [leave_step(context, tp, leaving, TOPICS if are_unclean else ()) for tp in dict.fromkeys((*first, *tps))]
    require_alike(context, steps, [step for step in alone if step.subjects[0] in tps or step.writes])


@given(contexts(), st.booleans(), st.data())
def test_partitions_created_together_are_created_as_each_alone(
    context: ControllerContext, has_partitions: bool, data: st.DataObject
) -> None:
    tps = context.partitions()
    for tp in tps:
        del context.leadership[tp]
        context.apply(facts.PartitionsFound([tp], [None], [(PartitionPhase.NEW, context.replica_phases.of(tp))]))
    parents = data.draw(st.sets(st.sampled_from(tps))) if has_partitions else set()
    existing = {paths.topic_partitions(name) for name in TOPICS if has_partitions} | set(map(paths.partition, parents))
    rounds = leadership.initialise(context, tps)
    steps: Sequence[Step] = []
    with suppress(StopIteration):
        effect = next(rounds)
        while not (isinstance(effect, Change) and effect.round == "create"):
            found = [Znode(b"", STAT) if path in existing else None for path in getattr(effect, "paths", ())]
            effect = rounds.send(ChangeOutcome() if isinstance(effect, Change) else found)
        steps = effect.steps
    able = [tp for tp in tps if context.online(tp, context.assignment(tp).replicas)]
    alone = [creation_step(context, tp, without_parent=tp not in parents) for tp in able]
    require_alike(context, steps, alone)


@given(contexts(), st.data())
def test_a_part_of_the_steps_is_that_of_the_steps_alone(context: ControllerContext, data: st.DataObject) -> None:
    steps = replaced(context, context.partitions(), [1, 2], {})
    indexes = sorted(data.draw(st.sets(st.sampled_from(range(len(steps))))))
    part = batch_of(context, steps).only(indexes)
    require_alike(context, part, [leave_step(context, steps[i].subjects[0], [1, 2], ()) for i in indexes])


@pytest.mark.parametrize("is_offline", [True, False], ids=["offline directory", "recalled"])
def test_a_partition_with_an_odd_replica_is_decided_on_its_own(*, is_offline: bool) -> None:
    context = ControllerContext(ENDPOINT, 7, 3)
    tps = [TopicPartition("a", number) for number in range(3)]
    for broker_id in (2, 3):
        context.apply(facts.BrokerRegistered(BrokerRegistration(broker_id, "h", 1, broker_id)))
    context.apply(facts.TopicWritten("a", TopicZnode(dict.fromkeys(range(3), ReplicaAssignment((1, 2, 3)))), 0))
    for tp in tps:
        context.apply(facts.LeadershipsWritten([tp], [LeaderAndIsr(1, 0, (1, 2, 3) if is_offline else (1,), 0, 6)]))
    if is_offline:
        context.apply(log_lost(tps[1], 2))
    else:
        context.strays.recalled[tps[1], 2] = None
    steps = decided(leadership.elect(context, tps, elections.offline, unclean={"a"}))
    written = [fact for step in steps for fact in singles(step.facts) if isinstance(fact, facts.LeadershipsWritten)]
    assert [leadership.leader for fact in written for leadership in fact.leaderships] == [2, 3, 2]


def test_an_illegal_transition_of_one_partition_does_not_stop_the_others() -> None:
    context = ControllerContext(ENDPOINT, 7, 3)
    first, second = TopicPartition("a", 0), TopicPartition("a", 1)
    context.apply(facts.PartitionsMoved([first], PartitionPhase.NEW))
    context.apply(facts.PartitionsMoved([second, first], PartitionPhase.ONLINE))
    assert context.partition_phases == {first: PartitionPhase.ONLINE}


@pytest.mark.parametrize("index", [2, -3])
def test_there_is_no_step_beyond_the_last(index: int) -> None:
    context = ControllerContext(ENDPOINT, 7, 3)
    steps = LeadershipSteps(context, (), (), ())
    with pytest.raises(IndexError):
        steps[index]
