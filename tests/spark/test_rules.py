from __future__ import annotations

import pytest

from spark_bridge.plan import Plan, PlanError, Reassignment
from spark_bridge.rules import Cluster, refuse, violations
from spark_bridge.snapshot import Broker, Partition, Snapshot


def cluster(racks: dict[int, str | None], lists: list[tuple[int, ...]], *removed: int) -> Cluster:
    brokers = tuple(Broker(b, rack) for b, rack in racks.items())
    partitions = tuple(Partition("t", n, replicas) for n, replicas in enumerate(lists))
    return Cluster(Snapshot(brokers, partitions), frozenset(removed))


def found(of: Cluster, *lists: tuple[int, ...]) -> list[str]:
    return violations(of, Plan(tuple(Reassignment("t", n, replicas) for n, replicas in enumerate(lists)), ()))


THREE: dict[int, str | None] = {1: None, 2: None, 3: None}


@pytest.mark.parametrize(
    ("of", "line"),
    [
        (cluster(THREE, [(1, 2)]), "no broker to remove: name at least one"),
        (cluster(THREE, [(1, 4)], 1, 9, 8), "broker 8, 9 is not in the snapshot: choose from 1, 2, 3, 4"),
        (
            cluster(THREE, [(1, 2)], 1, 2, 3),
            "removing 1, 2, 3 leaves no live broker: name fewer brokers or start others first",
        ),
        (
            cluster(THREE, [(1, 2), (3, 1, 2)], 3),
            (
                "t-1 has 3 replicas, and without 3 only 2 of the brokers can hold one: "
                "start 1 more, remove fewer, or lower its replication factor to 2"
            ),
        ),
        # Broker 7 is dead: it keeps its replica, and can receive none.
        (
            cluster(THREE, [(7, 1, 2)], 1, 3),
            (
                "t-0 has 3 replicas, and without 1, 3 only 2 of the brokers can hold one: "
                "start 1 more, remove fewer, or lower its replication factor to 2"
            ),
        ),
    ],
)
def test_refuses_in_one_line_what_has_no_plan(of: Cluster, line: str) -> None:
    with pytest.raises(PlanError) as caught:
        refuse(of)
    assert str(caught.value) == line


def test_dead_brokers_can_be_removed_and_may_keep_what_they_have() -> None:
    refuse(cluster(THREE, [(7, 1, 2), (8, 2)], 8))


def test_a_partition_that_stays_may_have_more_replicas_than_brokers_stay() -> None:
    refuse(cluster({1: None, 2: None}, [(7, 8, 1), (2,)], 2))


def test_a_plan_that_obeys_has_no_violations() -> None:
    assert found(cluster(THREE, [(1, 2)], 1), (3, 2)) == []


@pytest.mark.parametrize(
    ("new", "why"),
    [
        ((3,), "replication factor changed"),
        ((2, 2), "a broker is there twice"),
        ((2, 3), "a kept replica moved"),
        ((1, 2), "a replacement is removed or not live"),
        ((7, 2), "a replacement is removed or not live"),
    ],
)
def test_finds_what_breaks_a_rule(new: tuple[int, ...], why: str) -> None:
    arrow = f"t-0 [1, 2] -> {list(new)}"
    assert f"{arrow}: {why}" in found(cluster(THREE, [(1, 2)], 1), new)


def test_finds_partitions_that_should_be_in_the_plan_or_should_not() -> None:
    of = cluster(THREE, [(2, 3), (1, 2)], 1)
    assert found(of, (2, 3)) == ["t-0: in the plan without need", "t-1: not in the plan"]
    assert found(of, (2, 3), (3, 2), (3, 2)) == ["t-0: in the plan without need", "t-2: not in the snapshot"]
    twice = Plan((Reassignment("t", 1, (3, 2)),) * 2, ())
    assert violations(of, twice) == ["a partition is in the plan twice"]


@pytest.mark.parametrize(
    ("racks", "old", "good", "bad"),
    [
        # A rack is free: it must be used.
        ({1: "a", 2: "b", 3: "c", 4: "b"}, (1, 2), (3, 2), (4, 2)),
        # The rack of the removed broker is free again, for one of the two that are to be placed.
        ({1: "a", 2: "a", 3: "a", 4: "b", 5: "b"}, (1, 4), (2, 4), (5, 4)),
        # A broker without a rack is a rack of its own.
        ({1: "a", 2: None, 3: None, 4: "a", 5: "a"}, (1, 2, 5), (3, 2, 5), (4, 2, 5)),
    ],
)
def test_racks_are_as_many_as_possible(
    racks: dict[int, str | None], old: tuple[int, ...], good: tuple[int, ...], bad: tuple[int, ...]
) -> None:
    of = cluster(racks, [old], 1)
    assert found(of, good) == []
    assert found(of, bad) == [f"t-0 {list(old)} -> {list(bad)}: fewer racks than possible"]


def test_when_all_racks_are_used_any_broker_will_do() -> None:
    of = cluster({1: "a", 2: "a", 3: "b", 4: "a"}, [(1, 2, 3)], 1)
    assert found(of, (4, 2, 3)) == []
    assert of.barred(frozenset(of.open_racks), frozenset({2, 3})) == {2, 3}
