"""The independent checker finds each broken rule, and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pytest

from spark_bridge.model.brokers import Broker, Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind, LeaderScope
from tests.spark.kernel.instances import Instance
from tests.spark.shapes.rules import Rules, broken_rules, moved

REBALANCE = Goal(GoalKind.REBALANCE)
GONE = Goal(GoalKind.REBALANCE, dead_is_gone=True)
NO_STATES: Mapping[str, str] = MappingProxyType({})
NO_LEADERS = Goal(GoalKind.REBALANCE, leaders=LeaderScope.NONE)


def cluster(goal: Goal, *lists: Sequence[int], size: int = 10, states: Mapping[str, str] = NO_STATES) -> Instance:
    """Return brokers 0 to 4 in racks a, b, c and two without; states are by name: `{"b1": "dead"}`."""
    racks, disks = ("a", "b", "c", None, None), (None, None, None, None, 25)
    rows = [
        Broker(n, rack, disk=disk, state=BrokerState(states.get(f"b{n}", "live")))
        for n, (rack, disk) in enumerate(zip(racks, disks, strict=True))
    ]
    names = tuple((f"t{n}", n) for n in range(len(lists)))
    rows_of = tuple(map(tuple, lists))
    return Instance(0, "any", names, rows_of, (size,) * len(lists), (0,) * len(lists), Brokers.of(rows), goal)


@pytest.mark.parametrize(
    ("rule", "goal", "kinds", "before", "after"),
    [
        ("replication factor", REBALANCE, {}, [0, 1], [0]),
        ("replication factor", Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=2), {}, [0], [0]),
        ("broker twice", REBALANCE, {}, [3, 4], [3, 3]),
        ("new replica where none may go", REBALANCE, {"b2": "excluded"}, [0, 1], [0, 2]),
        ("new replica where none may go", Goal(GoalKind.REBALANCE, exclude=frozenset({2})), {}, [0, 1], [0, 2]),
        ("replica left on a drained broker", GONE, {"b1": "dead"}, [0, 1], [0, 1]),
        ("replica taken from a broker that does not serve", REBALANCE, {"b1": "dead"}, [0, 1], [0, 2]),
        ("changes what no broker serves", GONE, {"b1": "dead"}, [1], [2]),
        ("replica left on a drained broker", Goal(GoalKind.REMOVE_BROKERS, frozenset({1})), {}, [0, 1], [0, 1]),
        ("moves what need not move", Goal(GoalKind.REPAIR_RACKS), {}, [0, 1], [0, 2]),
        ("gives to who is not added", Goal(GoalKind.ADD_BROKERS, frozenset({3})), {}, [0, 1], [0, 2]),
        ("moves off who is not relieved", Goal(GoalKind.RELIEVE, frozenset({0})), {}, [0, 1], [0, 2]),
        ("moves off who is not relieved", Goal(GoalKind.RELIEVE, frozenset({0, 2})), {}, [0, 1], [2, 1]),
        ("another leader, and none may change", NO_LEADERS, {}, [0, 1], [1, 0]),
        ("another leader of what is not touched", Goal(GoalKind.REPAIR_RACKS), {}, [0, 1], [1, 0]),
        ("moves data", Goal(GoalKind.LEADERS), {}, [0, 1], [0, 2]),
        ("another leader of a topic that is not meant", Goal(GoalKind.LEADERS, topics=("u",)), {}, [0, 1], [1, 0]),
        ("another order without another leader", REBALANCE, {}, [0, 1, 2], [0, 2, 1]),
    ],
)  # fmt: skip
def test_a_broken_rule_is_found(
    rule: str, goal: Goal, kinds: dict[str, str], before: list[int], after: list[int]
) -> None:
    given = cluster(goal, before, states=kinds)
    found = {line.split(":")[0] for line in broken_rules(given, [after])}
    assert found == {rule}


@pytest.mark.parametrize(
    ("goal", "kinds", "before", "after"),
    [
        (REBALANCE, {}, [0, 1, 2], [1, 0, 2]),
        (REBALANCE, {"b1": "excluded"}, [0, 1], [0, 1]),
        (Goal(GoalKind.REMOVE_BROKERS, frozenset({1}), dead_is_gone=True), {"b2": "dead"}, [1, 2, 0], [3, 4, 0]),
        (Goal(GoalKind.REMOVE_BROKERS, frozenset({1})), {"b2": "dead"}, [1, 2, 0], [3, 2, 0]),
        (GONE, {"b1": "dead", "b2": "dead"}, [1, 2], [1, 2]),
        (Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=1), {}, [0, 1], [1]),
        (Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=1, topics=("u*",)), {}, [0, 1], [0, 1]),
        (Goal(GoalKind.ADD_BROKERS, frozenset({3}), dead_is_gone=True), {"b1": "dead"}, [0, 1], [0, 2]),
        (Goal(GoalKind.RELIEVE, frozenset({0})), {"b1": "dead"}, [0, 1], [2, 1]),
    ],
)
def test_a_plan_that_keeps_the_rules_is_fine(
    goal: Goal, kinds: dict[str, str], before: list[int], after: list[int]
) -> None:
    assert broken_rules(cluster(goal, before, states=kinds), [after]) == []


def test_a_disk_holds_what_it_gets() -> None:
    given = cluster(REBALANCE, [0], [1], [4])
    assert broken_rules(given, [[4], [1], [4]]) == []
    assert [line.split(":")[0] for line in broken_rules(given, [[4], [4], [4]])] == ["disk"]
    # Who has more than fits may keep it.
    full = cluster(REBALANCE, [4], [4], [4])
    assert broken_rules(full, [[4], [4], [4]]) == []


def test_a_rack_holds_as_many_as_the_receivers_make_necessary() -> None:
    rows = [Broker(n, rack) for n, rack in enumerate("aaabbbc")]
    given = Instance(0, "any", (("t", 0),), ((0, 1, 2, 3, 4, 5),), (0,), (0,), Brokers.of(rows), REBALANCE)
    rules = Rules.of(given)
    assert [rules.limit(factor) for factor in range(1, 8)] == [1, 1, 1, 2, 2, 3, 3]
    assert broken_rules(given, [(0, 1, 2, 3, 4, 5)]) == []
    assert rules.forced((0, 1, 2), 3) == 2


def test_replicas_are_what_moves_where_nobody_has_a_byte() -> None:
    assert moved(cluster(REBALANCE, [0, 1]), [[2, 1]]) == 10
    assert moved(cluster(REBALANCE, [0, 1], size=0), [[2, 3]]) == 2
