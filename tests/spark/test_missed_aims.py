"""The aims of a plan in its report, and the reasons why it misses them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from attrs import evolve

from spark_bridge.engines.in_process import InProcess
from spark_bridge.model.block import Block
from spark_bridge.model.brokers import Broker, Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.model.summary import Evenness, Summary
from spark_bridge.planning import plan_cluster
from spark_bridge.report.words import warnings
from spark_bridge.summing import summarize

MORE = "`klamm plan rebalance` evens out more"
NOTHING_ELSE = f"because only forced moves are made; {MORE}"


def planned(lists: Sequence[Sequence[int]], goal: Goal, size: Sequence[int] | None = None, racks: str = "") -> Summary:
    """Plan for brokers 0, 1, ... in racks of one letter each; 4 brokers without racks where none are named."""
    brokers = Brokers.of(Broker(n, rack=rack.strip() or None) for n, rack in enumerate(racks or "    "))
    none = [0] * len(lists)
    block = Block.of([("t", n) for n in range(len(lists))], lists, size or none, none, none)
    return summarize(plan_cluster(InProcess([block]), brokers, goal, lambda _: None), {}, 0)


def test_what_a_plan_reaches_was_aimed_at() -> None:
    # The heaviest partition is far above the tolerance, and yet all brokers end with as much.
    sizes = [40, 40, 40, 40, *[5] * 24]
    summary = planned([[n % 2] for n in range(28)], Goal(GoalKind.REBALANCE), sizes)
    ends = {row.measure: (row.after, row.reachable) for row in summary.evenness}
    assert ends == {"replicas": (0.0, 0.05), "leaders": (0.0, 0.05), "bytes": (0.0, 0.05)}
    assert "-0.0" not in json.dumps(summary.to_document())


@pytest.mark.parametrize(
    ("goal", "lists", "racks", "note"),
    [
        (
            Goal(GoalKind.REMOVE_BROKERS, frozenset({3})),
            [*[[0]] * 40, [1], [2], [3]],
            "    ",
            f"replicas, leaders: less even than aimed at, {NOTHING_ELSE}",
        ),
        (
            Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=1),
            [[0]] * 40,
            "    ",
            f"replicas, leaders: less even than aimed at, {NOTHING_ELSE}",
        ),
        (
            Goal(GoalKind.LEADERS),
            [[0]] * 40 + [[1, 2]] * 2,
            "   ",
            f"leaders: less even than aimed at, because a broker can lead only partitions that it has; {MORE}",
        ),
        (
            Goal(GoalKind.LEADERS, topics=("t",)),
            [[0]] * 40 + [[1, 2]] * 2,
            "   ",
            f"leaders: less even than aimed at, because only the leaders of --topics change; {MORE}",
        ),
        (
            Goal(GoalKind.ADD_BROKERS, frozenset({3})),
            [[0, 2]] * 40 + [[1, 2]],
            "aabb",
            f"replicas, leaders: less even than aimed at, because only the added brokers receive replicas; {MORE}",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, Goal) else "",
)
def test_a_goal_that_leaves_loads_uneven_says_why(
    goal: Goal,
    lists: list[list[int]],
    racks: str,
    note: str,
) -> None:
    assert note in planned(lists, goal, racks=racks).notes


def test_an_even_cluster_gets_no_such_note() -> None:
    summary = planned([[n % 4] for n in range(40)], Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=1))
    assert summary.notes == ()


def test_a_rebalance_is_not_told_to_run_itself() -> None:
    even = planned([[n % 4] for n in range(40)], Goal(GoalKind.REBALANCE))
    worse = evolve(even, evenness=(Evenness("replicas", 0.1, 0.3, 0.05),), worse=("replicas",))
    assert list(warnings(worse)) == [
        (
            "The forced moves leave the cluster less even in replicas (30 %, before 10 %): another rebalance "
            "may correct that."
        )
    ]


@pytest.mark.parametrize("state", [BrokerState.DRAINING, BrokerState.EXCLUDED])
def test_a_broker_without_a_share_is_not_told_as_far_from_it(state: BrokerState) -> None:
    # No other broker can take a replica from the relieved one.
    brokers = Brokers.of([Broker(0, state=state), Broker(1)])
    block = Block.of([("t", n) for n in range(40)], [[0, 1]] * 40, [7_000] * 40, [0] * 40, [0] * 40)
    goal = Goal(GoalKind.RELIEVE, frozenset({0}))
    summary = summarize(plan_cluster(InProcess([block]), brokers, goal, lambda _: None), {}, 0)
    missed = "1 of 2 brokers could not be brought within 5 % of their shares; broker 0 has no share and ends with"
    assert summary.notes[:2] == (f"replicas: {missed} 40", f"bytes: {missed} 280 kB")
