"""The Spark job on known answers, and on random clusters against the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_bridge.plan import Plan
from spark_bridge.rules import Cluster, violations
from spark_bridge.snapshot import Broker, Partition, Snapshot
from tests.spark.known_answers import KnownAnswer

pytestmark = pytest.mark.requirement("E3")

PlanHere = Callable[[Cluster], Plan]
DEAD = 90


def test_a_decommission_is_within_the_bounds_of_the_field(plan_here: PlanHere) -> None:
    known = KnownAnswer.load("siftscience_decommission")
    plan = plan_here(known.cluster)
    assert violations(known.cluster, plan) == []
    sizes = Counter(Counter(b for replicas in known.lists_after(plan).values() for b in replicas).values())
    assert sizes == {2: known.expect["brokers_with_2"], 3: known.expect["brokers_with_3"]}
    assert known.least_kept(plan) >= known.expect["min_kept_per_partition"]
    assert plan.moved_replicas == 2
    assert plan.replica_spread == 0
    assert [(b.id, b.replicas_before, b.replicas_after) for b in plan.brokers][2] == (12, 2, 0)


def test_a_replacement_leaves_the_rest_alone(plan_here: PlanHere) -> None:
    known = KnownAnswer.load("siftscience_replacement")
    plan = plan_here(known.cluster)
    assert violations(known.cluster, plan) == []
    assert known.expect["partition_0_unchanged"]
    assert known.lists_after(plan)["test", 0] == (10, 11)
    assert known.least_kept(plan) >= known.expect["min_kept_per_partition"]


def test_one_broker_of_twenty_costs_one_move(plan_here: PlanHere) -> None:
    known = KnownAnswer.load("readme_remove_1_of_20")
    plan = plan_here(known.cluster)
    assert violations(known.cluster, plan) == []
    assert plan.moved_replicas == known.expect["replica_moves"] == 1
    assert [(p.partition, p.replicas[0]) for p in plan.partitions] == [(1, 8)]


def test_racks_bind_and_a_topic_spreads_within_them(plan_here: PlanHere) -> None:
    brokers = tuple(Broker(b, "abc"[b % 3]) for b in range(9))
    partitions = tuple(Partition("t", n, (n % 9, (n + 1) % 9, (n + 2) % 9)) for n in range(90))
    cluster = Cluster(Snapshot(brokers, partitions), frozenset({0}))
    plan = plan_here(cluster)
    assert violations(cluster, plan) == []
    # Only 3 and 6 are left in rack a; each takes half of what 0 had, and half of what it was first of.
    assert [(b.id, b.replicas_after, b.leaders_after) for b in plan.brokers if b.replicas_after > 30] == [
        (3, 45, 15),
        (6, 45, 15),
    ]
    # Neighbours in the topic get different brokers.
    assert [p.replicas[0] for p in plan.partitions if p.partition % 9 == 0] == [3, 6] * 5


def test_the_order_of_the_snapshot_does_not_matter(plan_here: PlanHere) -> None:
    cluster = KnownAnswer.load("siftscience_decommission").cluster
    shuffled = Snapshot(cluster.snapshot.brokers[::-1], cluster.snapshot.partitions[::-1])
    assert plan_here(evolve(cluster, snapshot=shuffled)) == plan_here(cluster)


def test_nothing_to_move_is_an_empty_plan(plan_here: PlanHere) -> None:
    cluster = Cluster(Snapshot((Broker(1, None), Broker(2, None)), (Partition("t", 0, (1,)),)), frozenset({2}))
    plan = plan_here(cluster)
    assert plan.partitions == ()
    assert plan.moved_replicas == plan.replica_spread == plan.leader_spread == 0
    assert plan.reassignment_json() == '{"version":1,"partitions":[]}\n'


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Draw clusters with dead brokers, missing racks and several removals, with all partitions that can be moved."""
    ids = draw(st.lists(st.integers(0, 12), min_size=3, max_size=9, unique=True))
    racks: tuple[str | None, ...] = draw(st.sampled_from([(None,), ("a", "b"), ("a", "b", "c", "d"), ("a", "b", None)]))
    brokers = tuple(Broker(b, draw(st.sampled_from(racks))) for b in ids)
    removed = draw(st.frozensets(st.sampled_from([*ids, DEAD]), min_size=1, max_size=min(3, len(ids) - 1)))
    lists = st.lists(st.sampled_from([*ids, DEAD]), min_size=1, max_size=5, unique=True).map(tuple)
    drawn = draw(st.lists(lists, min_size=20, max_size=40))
    staying = set(ids) - removed
    possible = [r for r in drawn if len(removed.intersection(r)) <= len(staying.difference(r))]
    partitions = tuple(Partition(f"t{n % 3}", n, replicas) for n, replicas in enumerate(possible))
    return Cluster(Snapshot(brokers, partitions), removed)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(clusters())
def test_every_plan_obeys_the_rules_and_its_report(plan_here: PlanHere, cluster: Cluster) -> None:
    plan = plan_here(cluster)
    assert violations(cluster, plan) == []
    new = {(p.topic, p.partition): p.replicas for p in cluster.snapshot.partitions}
    new |= {(p.topic, p.partition): p.replicas for p in plan.partitions}
    replicas, leaders = Counter(b for r in new.values() for b in r), Counter(r[0] for r in new.values())
    assert {b.id: (b.replicas_after, b.leaders_after) for b in plan.brokers} == {
        b: (replicas[b], leaders[b]) for b in cluster.brokers
    }
    assert plan.moved_replicas == sum(
        len(cluster.removed.intersection(p.replicas)) for p in cluster.snapshot.partitions
    )
    assert [(p.topic, p.partition) for p in plan.partitions] == sorted((p.topic, p.partition) for p in plan.partitions)
