from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from attrs import evolve

from spark_bridge.model.block import Block, padded
from spark_bridge.model.brokers import Broker, Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.rules import disk_tally, disk_violations, violations

LIVE, EXCLUDED, DRAINING, DEAD = BrokerState
REBALANCE, ADD, REMOVE, FACTOR, RELIEVE, RACKS, LEADERS = GoalKind

Lists = tuple[Sequence[int], Sequence[int]]
"""The brokers of a partition before and after, by id."""


def brokers_of(racks: str, states: Mapping[int, BrokerState] | None = None) -> Brokers:
    """Return brokers 1, 2, 3 ... with a letter each for their racks, `.` for none."""
    letters = enumerate(racks, start=1)
    return Brokers.of(Broker(i, None if r == "." else r, state=(states or {}).get(i, LIVE)) for i, r in letters)


def planned(brokers: Brokers, *lists: Lists) -> Block:
    """Return partitions t-0, t-1 ... of 10 bytes."""
    before, after = ([[brokers.index_of.get(id_, id_) for id_ in pair[n]] for pair in lists] for n in (0, 1))
    names = [("t", number) for number in range(len(lists))]
    block = Block.of(names, before, [10] * len(lists), [0] * len(lists), [0] * len(lists))
    return block.with_after(padded(after))


def goal_of(kind: GoalKind, *named: int, racks: bool = True) -> Goal:
    return Goal(kind, frozenset(named), replication_factor=2 if kind is FACTOR else None, racks=racks)


def broken(brokers: Brokers, goal: Goal, *lists: Lists) -> list[str]:
    return violations(planned(brokers, *lists), brokers, goal)


@pytest.mark.parametrize("kind", [REBALANCE, RACKS])
def test_a_plan_that_changes_nothing_breaks_nothing(kind: GoalKind) -> None:
    assert broken(brokers_of("aabb"), goal_of(kind), ([1, 3], [1, 3]), ([4], [4])) == []


def test_a_block_without_partitions_breaks_nothing() -> None:
    assert broken(brokers_of("ab"), goal_of(REBALANCE)) == []


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ([1, 2], [1], "has 1 replicas, not 2"),
        ([1, 2], [1, 2, 3], "has 3 replicas, not 2"),
        ([1, 2], [1, 1], "broker 1 is a duplicate"),
        ([1, 2, 3], [2, 2, 2], "broker 2 is a duplicate"),
        ([1, 2], [1, 4], "broker 4 may not receive replicas"),
        ([1, 2], [1, 5], "broker 5 may not receive replicas"),
        ([1, 2], [1, 6], "broker 6 may not receive replicas"),
        ([1, 2], [1, 99], "the list has a gap or an unknown broker"),
        ([1, 2], [1, -2], "the list has a gap or an unknown broker"),
        ([1, 2], [1, -1, 2], "the list has a gap or an unknown broker"),
    ],
)
def test_whatever_the_goal_each_list_is_one_that_brokers_can_carry_out(
    before: Sequence[int], after: Sequence[int], rule: str
) -> None:
    brokers = brokers_of("abcdef", {4: EXCLUDED, 5: DRAINING, 6: DEAD})
    for goal in (goal_of(REBALANCE), goal_of(RELIEVE, 1, 2), goal_of(ADD, 3), goal_of(RACKS)):
        assert any(line.startswith("t-0: ") and line.endswith(rule) for line in broken(brokers, goal, (before, after)))


def test_nothing_stays_on_brokers_that_drain_or_are_dead() -> None:
    brokers = brokers_of("abcd", {3: DRAINING, 4: DEAD})
    for goal in (goal_of(REBALANCE), goal_of(ADD, 2), goal_of(REMOVE, 2), goal_of(RACKS)):
        gone = evolve(goal, dead_is_gone=True)
        assert broken(brokers, gone, ([1, 3], [3, 1]), ([4], [1]), ([4], [4])) == [
            "t-0: 1,3 -> 3,1: broker 3 is draining or dead, but keeps its replica",
            "t-2: 4 -> 4: broker 4 is draining or dead, but keeps its replica",
        ]


def test_what_does_not_serve_keeps_its_replicas_unless_the_goal_removes_it() -> None:
    brokers = brokers_of("abcd", {3: DEAD, 4: DEAD})
    told = "t-0: 1,4 -> 1,2: 1 replicas leave brokers that do not serve and that the goal does not remove"
    for goal in (goal_of(REBALANCE), goal_of(ADD, 2), goal_of(REMOVE, 3), goal_of(RACKS)):
        assert told in broken(brokers, goal, ([1, 4], [1, 2]))
        assert broken(brokers, goal, ([1, 4], [1, 4])) == []
    assert broken(brokers, goal_of(REMOVE, 4), ([1, 4], [1, 2])) == []
    shorter = Goal(FACTOR, replication_factor=2)
    assert broken(brokers, shorter, ([1, 4, 2], [1, 2]), ([4, 3, 2], [3, 2])) == []
    assert len(broken(brokers, shorter, ([1, 4, 3], [1, 2]))) == 2


def test_what_an_excluded_broker_has_may_stay_or_leave() -> None:
    brokers = brokers_of("abc", {3: EXCLUDED})
    assert broken(brokers, goal_of(REBALANCE), ([1, 3], [1, 3]), ([3], [2])) == []


def test_a_broker_that_the_goal_excludes_gets_nothing_new() -> None:
    goal = evolve(goal_of(REBALANCE), exclude=frozenset({3}))
    assert broken(brokers_of("abc"), goal, ([1, 3], [1, 3]), ([1], [3]), ([3], [2])) == [
        "t-1: 1 -> 3: broker 3 may not receive replicas"
    ]


def test_a_removed_broker_drains_even_where_it_is_still_called_live() -> None:
    brokers, goal = brokers_of("abc"), goal_of(REMOVE, 3)
    assert broken(brokers, goal, ([1, 3], [1, 2])) == []
    assert broken(brokers, goal, ([1, 3], [1, 3]), ([3, 1], [2, 3])) == [
        "t-0: 1,3 -> 1,3: broker 3 is draining or dead, but keeps its replica",
        "t-1: 3,1 -> 2,3: broker 3 is draining or dead, but keeps its replica",
    ]
    assert broken(brokers, goal, ([1], [3])) == [
        "t-0: 1 -> 3: broker 3 may not receive replicas",
        "t-0: 1 -> 3: 1 new replicas, 0 needed",
    ]


def test_a_line_shows_ids_as_they_are_with_gaps_and_what_is_no_broker() -> None:
    brokers = Brokers.of(Broker(id_) for id_ in (10, 20, 30))
    block = planned(brokers, ([10, 20, 30], [20])).with_after(np.array([[1, -1, 7]], np.int32))
    assert violations(block, brokers, goal_of(REBALANCE)) == [
        "t-0: 10,20,30 -> 20,_,?: the list has a gap or an unknown broker",
        "t-0: 10,20,30 -> 20,_,?: has 1 replicas, not 3",
    ]


@pytest.mark.parametrize(
    ("racks", "states", "before", "after", "rule"),
    [
        ("aabb", {}, [1, 2], [1, 3], None),
        ("aabb", {}, [1, 2], [1, 2], "1 replicas above the limit of 1 per rack"),
        ("aabb", {}, [1, 3], [1, 2], "1 replicas above the limit of 1 per rack"),
        # ceil(3 / 2) is 2, in either rack.
        ("aaabb", {}, [1, 2, 4], [1, 2, 4], None),
        ("aaabb", {}, [1, 2, 3], [1, 2, 3], "1 replicas above the limit of 2 per rack"),
        # A broker without a rack is a rack.
        ("...", {}, [1, 2], [1, 2], None),
        ("aa.", {}, [1, 2], [1, 3], None),
        ("aa.", {}, [1, 2], [1, 2], "1 replicas above the limit of 1 per rack"),
        # One rack, or none that receives: nothing to spread over.
        ("aaa", {}, [1, 2], [1, 2], None),
        # A rack whose brokers all drain is none to count on.
        ("aab", {3: DRAINING}, [1, 3], [1, 2], None),
        # Four replicas would be two in each rack, but b has only one broker: a has to take three.
        ("aaab", {}, [1, 2, 3, 4], [1, 2, 3, 4], None),
        ("aaaabb", {6: EXCLUDED}, [1, 2, 3, 5], [1, 2, 3, 5], None),
        ("aaaabb", {6: EXCLUDED}, [1, 2, 3, 5], [1, 2, 3, 4], "1 replicas above the limit of 3 per rack"),
        ("aaaab", {4: EXCLUDED}, [1, 2, 4, 5], [1, 2, 4, 5], None),
        # What an excluded broker keeps is not room to count on ...
        ("aaaabb", {6: EXCLUDED}, [1, 2, 5, 6], [1, 2, 5, 6], None),
        ("aaaabb", {6: EXCLUDED}, [1, 2, 5, 6], [1, 2, 5, 3], None),
        # ... and counts in its rack.
        ("aabb", {2: EXCLUDED}, [1, 2], [1, 2], "1 replicas above the limit of 1 per rack"),
        ("aabb", {2: EXCLUDED}, [1, 2], [2, 3], None),
    ],
)
@pytest.mark.parametrize("kind", [REBALANCE, ADD, REMOVE, RACKS])
def test_replicas_are_spread_over_racks_as_far_as_receivers_permit(
    kind: GoalKind,
    racks: str,
    states: Mapping[int, BrokerState],
    before: Sequence[int],
    after: Sequence[int],
    rule: str | None,
) -> None:
    brokers = brokers_of(racks + "z", {**states, len(racks) + 1: DRAINING})
    goal = goal_of(kind, *([len(racks) + 1] if kind is REMOVE else [1] if kind is ADD else []))
    crowds = [line for line in broken(brokers, goal, (before, after)) if "per rack" in line]
    lists = f"{','.join(map(str, before))} -> {','.join(map(str, after))}"
    assert crowds == ([f"t-0: {lists}: {rule}"] if rule else [])
    assert not [line for line in broken(brokers, evolve(goal, racks=False), (before, after)) if "per rack" in line]


def test_partitions_of_different_factors_have_limits_of_their_own() -> None:
    brokers = brokers_of("aabb")
    assert broken(brokers, goal_of(REBALANCE), ([1], [1]), ([1, 2], [1, 2]), ([1, 2, 3], [1, 2, 3])) == [
        "t-1: 1,2 -> 1,2: 1 replicas above the limit of 1 per rack"
    ]


def test_relieving_makes_no_partition_less_spread_and_repairs_none() -> None:
    brokers, goal = brokers_of("aaabbb"), goal_of(RELIEVE, 1)
    assert broken(brokers, goal, ([1, 2], [2, 1]), ([1, 2], [3, 2]), ([1, 4], [2, 4])) == []
    assert broken(brokers, goal, ([1, 4], [5, 4])) == [
        "t-0: 1,4 -> 5,4: 1 replicas above the limit of 1 per rack, 0 before"
    ]


def test_relieving_moves_replicas_of_the_named_brokers_alone() -> None:
    brokers, goal = brokers_of("....", {4: DRAINING}), goal_of(RELIEVE, 1)
    assert broken(brokers, goal, ([1, 2], [3, 2]), ([4, 2], [4, 2])) == []
    assert broken(brokers, goal, ([1, 2], [1, 3]), ([4], [3])) == [
        "t-0: 1,2 -> 1,3: broker 2 is not relieved, but loses its replica",
        "t-1: 4 -> 3: broker 4 is not relieved, but loses its replica",
    ]


@pytest.mark.parametrize(
    ("racks", "states", "before", "after", "gainer"),
    [
        ("abc", {}, [1, 2], [3, 2], None),
        ("abc", {}, [1, 3], [2, 3], 2),
        # A replica of a drained or dead broker may go to any receiver, another of the same partition not.
        ("abcd", {4: DEAD}, [4, 1], [2, 1], None),
        ("abcd", {4: DRAINING}, [4, 3], [1, 2], 1),
        ("abcd", {4: DRAINING}, [4, 1], [3, 2], None),
        # So may one that has to change racks.
        ("aab", {}, [1, 2], [1, 3], None),
        ("aabb", {}, [1, 2], [1, 4], None),
        ("aaab", {}, [1, 4], [2, 4], 2),
        # The drained one was what crowded its rack.
        ("aabb", {2: DEAD}, [1, 2], [1, 4], None),
    ],
)
def test_adding_brokers_gives_replicas_to_others_only_as_repairs(
    racks: str, states: Mapping[int, BrokerState], before: Sequence[int], after: Sequence[int], gainer: int | None
) -> None:
    lines = broken(brokers_of(racks, states), evolve(goal_of(ADD, 3), dead_is_gone=True), (before, after))
    without_need = [line for line in lines if "not added" in line]
    assert any(f"broker {gainer} is not added" in line for line in without_need) if gainer else lines == []


@pytest.mark.parametrize(
    ("kind", "before", "after", "rule"),
    [
        (REMOVE, [1, 5], [1, 2], None),
        (REMOVE, [1, 5], [2, 3], "2 new replicas, 1 needed"),
        (REMOVE, [1, 3], [1, 4], "1 new replicas, 0 needed"),
        (RACKS, [1, 3], [2, 4], "2 new replicas, 0 needed"),
        (FACTOR, [1, 3, 4], [1, 3], None),
        (FACTOR, [1, 3, 4], [1, 4], None),
        (FACTOR, [1, 2, 3], [1, 4], "1 new replicas, 0 needed"),
        (FACTOR, [1], [1, 3], None),
        (FACTOR, [1], [2, 3], "2 new replicas, 1 needed"),
        (FACTOR, [1], [1], "has 1 replicas, not 2"),
        (FACTOR, [1, 5], [1, 3], None),
    ],
)
def test_other_goals_move_only_what_must(
    kind: GoalKind, before: Sequence[int], after: Sequence[int], rule: str | None
) -> None:
    brokers = brokers_of("aabbc", {5: DRAINING})
    lines = broken(brokers, goal_of(kind, *([5] if kind is REMOVE else [])), (before, after))
    assert [line.rpartition(": ")[2] for line in lines if "per rack" not in line] == ([rule] if rule else [])


def test_a_rack_that_has_to_take_more_than_its_part_forces_no_move() -> None:
    assert broken(brokers_of("aaaab"), goal_of(RACKS), ([1, 2, 3, 5], [1, 2, 3, 5]), ([1, 2, 3, 5], [1, 2, 4, 5])) == [
        "t-1: 1,2,3,5 -> 1,2,4,5: 1 new replicas, 0 needed"
    ]


def test_a_smaller_factor_moves_nothing() -> None:
    assert broken(brokers_of("abcd"), goal_of(FACTOR), ([1, 2, 3], [1, 2]), ([1, 2, 3], [1, 4])) == [
        "t-1: 1,2,3 -> 1,4: 1 new replicas, 0 needed"
    ]


def test_a_new_factor_is_asked_of_the_topics_that_match() -> None:
    brokers = brokers_of("abc")
    block = Block.of([("logs-a", 0), ("other", 0)], [[0], [1]], [1, 1], [0, 0], [0, 0])
    goal = evolve(goal_of(FACTOR), topics=("logs-*", "nothing"))
    assert violations(block, brokers, goal) == ["logs-a-0: 1 -> 1: has 1 replicas, not 2"]
    assert violations(block.with_after(padded([[0, 2], [1]])), brokers, goal) == []
    assert violations(block, brokers, evolve(goal, topics=("*",)))[1:] == ["other-0: 2 -> 2: has 1 replicas, not 2"]


def test_lines_come_in_the_order_of_partitions_with_all_that_is_wrong() -> None:
    brokers = brokers_of("abc", {3: EXCLUDED})
    assert broken(brokers, goal_of(REBALANCE), ([1], [3]), ([1, 2], [2]), ([1, 2], [1, 2]), ([1], [3])) == [
        "t-0: 1 -> 3: broker 3 may not receive replicas",
        "t-1: 1,2 -> 2: has 1 replicas, not 2",
        "t-3: 1 -> 3: broker 3 may not receive replicas",
    ]


def test_a_disk_may_be_full_to_the_brim_and_over_full_only_where_nothing_new_came() -> None:
    brokers = Brokers.of([Broker(1, disk=20), Broker(2, disk=20), Broker(3, disk=5), Broker(4)])
    lists: list[Lists] = [([1], [1]), ([1], [1]), ([1], [2]), ([1], [2]), ([3], [3]), ([1], [4]), ([1], [4])]
    tally = disk_tally(planned(brokers, *lists), brokers)
    assert tally.tolist() == [[20, 0], [20, 20], [10, 0], [20, 20]]
    assert disk_violations(brokers, tally) == []
    more = disk_tally(planned(brokers, ([1], [3]), ([1], [2])), brokers)
    assert disk_violations(brokers, tally + more) == [
        "broker 2: gains 30 bytes and would have 30, more than its disk of 20",
        "broker 3: gains 10 bytes and would have 20, more than its disk of 5",
    ]
