"""Forced moves: the replicas that leave, the places that open, and their receivers."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from spark_bridge.kernel.deal import Deal, forced, full_racks
from spark_bridge.kernel.view import Turn, View
from spark_bridge.model.block import NOBODY, Block
from spark_bridge.model.brokers import Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind
from tests.spark.kernel.small import REBALANCE, block_of, in_racks, lists_of, load_of, terms_of

_ = NOBODY
ALONE = Turn(0, 1, 1)


def factor(wanted: int, *topics: str) -> Goal:
    return Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=wanted, topics=topics)


def leaving(*brokers: int) -> Goal:
    return Goal(GoalKind.REMOVE_BROKERS, frozenset(brokers))


def opened_in(
    block: Block, brokers: Brokers, goal: Goal
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.bool_]], np.ndarray[tuple[int, ...], np.dtype[np.int32]]]:
    """Return the open places and what is kept, seen from a block that is alone."""
    terms = terms_of([block], brokers, goal)
    return forced(block, terms, View.of(block, 0, ALONE, terms, load_of([block], brokers)))


def dealt(block: Block, brokers: Brokers, goal: Goal) -> list[list[int]]:
    """Deal what is forced in a block that is alone; everything finds a place."""
    done, tally = Deal(terms_of([block], brokers, goal), load_of([block], brokers), ALONE)(0, block)
    assert tally["unplaced"].sum() == 0
    assert np.array_equal(tally["load"], load_of([done], brokers))
    return lists_of(done.after)


@pytest.mark.parametrize(
    ("racks", "goal", "replicas", "kept", "opened"),
    [
        ("____", leaving(9), [0, 1], [0, 1], []),
        ("____", leaving(0), [0, 1], [_, 1], [0]),
        ("____", leaving(0, 1), [0, 1], [_, _], [0, 1]),
        ("aabb", REBALANCE, [0, 1], [0, _], [1]),
        ("aabb", evolve(REBALANCE, racks=False), [0, 1], [0, 1], []),
        ("aabb", Goal(GoalKind.RELIEVE, frozenset({0})), [0, 1], [0, 1], []),
        ("____", factor(3), [0, 1], [0, 1, _], [2]),
        ("____", factor(4), [0], [0, _, _, _], [1, 2, 3]),
        ("____", factor(3, "u*"), [0, 1], [0, 1], []),
        ("____", factor(3, "u*", "t"), [0, 1], [0, 1, _], [2]),
        # Equally full: of those behind the leader the first goes.
        ("____", factor(2), [2, 0, 1], [2, _, 1], []),
        ("____", factor(1), [2, 0, 1], [2, _, _], []),
    ],
)
def test_what_is_forced(racks: str, goal: Goal, replicas: list[int], kept: list[int], opened: list[int]) -> None:
    brokers = in_racks(racks + "_" * 6)
    block = block_of([replicas])
    places, lists = opened_in(block, brokers, goal)
    assert lists.tolist() == [kept]
    assert np.flatnonzero(places[0]).tolist() == opened


def test_a_lower_factor_takes_from_the_fullest_but_never_from_the_preferred_leader() -> None:
    # Broker 0 has four replicas, 1 and 2 three each.
    lists = [[0, 1], [0, 2], [1, 0], [2, 0], [1, 2]]
    assert dealt(block_of(lists), in_racks("____"), factor(1)) == [[0], [0], [1], [2], [1]]
    lists = [[1, 0, 2], [2, 0, 1], [0, 3], [0, 3]]
    assert dealt(block_of(lists), in_racks("____"), factor(2)) == [[1, 2], [2, 1], [0, 3], [0, 3]]


def test_a_lower_factor_leaves_an_even_cluster_even() -> None:
    lists = [[n % 6, (n + 1) % 6, (n + 2) % 6] for n in range(60)]
    block, brokers = block_of(lists, [n % 7 for n in range(60)]), in_racks("abcabc")
    after = dealt(block, brokers, factor(2))
    held = [sum(b in row for row in after) for b in range(6)]
    assert max(held) - min(held) <= 2


def test_of_a_rack_that_a_lower_factor_makes_too_full_the_preferred_leader_stays() -> None:
    lists = [[0, 1, 2], [1, 0, 3], [2, 3, 0], [0, 2, 3]]
    assert dealt(block_of(lists), in_racks("aabb"), factor(2)) == [[0, 2], [1, 3], [2, 0], [0, 3]]
    # Where its rack has nobody else, one has to move.
    assert dealt(block_of([[0, 1, 4]]), in_racks("aab_a"), factor(2)) == [[0, 2]]


def test_who_leaves_counts_towards_a_lower_factor() -> None:
    brokers = Brokers.of(evolve(b, state=BrokerState.DRAINING if b.id == 0 else b.state) for b in in_racks("____").rows)
    assert dealt(block_of([[0, 1, 2], [1, 2, 0]]), brokers, factor(2)) == [[1, 2], [1, 2]]


def test_of_a_crowded_rack_the_emptiest_broker_keeps_its_replica() -> None:
    # Brokers 0 and 1 share a rack; 0 is fuller.
    block, brokers = block_of([[0, 1], [0, 2], [0, 3]]), in_racks("aabc")
    places, _lists = opened_in(block, brokers, REBALANCE)
    assert places.tolist() == [[True, False], [False, False], [False, False]]


def test_new_replicas_take_the_places_of_those_that_go() -> None:
    assert dealt(block_of([[0, 1, 2]]), in_racks("____"), leaving(1)) == [[0, 3, 2]]


def test_a_greater_factor_adds_at_the_end_and_wherever_racks_permit() -> None:
    assert dealt(block_of([[0], [1]]), in_racks("aabb"), factor(2)) == [[0, 2], [1, 3]]


def test_some_topics_may_get_a_greater_factor_and_others_keep_theirs() -> None:
    names = [("kept", 0), ("raised", 0)]
    block = Block.of(names, [[0, 1], [1]], [5, 7], [1, 1], [1, 1])
    assert dealt(block, in_racks("____"), factor(4, "rais*")) == [[0, 1], [1, 2, 3, 0]]


def test_the_heaviest_is_dealt_first_to_the_emptiest_broker() -> None:
    # 3 drains; the small ones go where no large one went.
    block = block_of([[3], [3], [3], [3]], size=[1, 1, 10, 9])
    brokers = in_racks("____")
    assert dealt(block, brokers, leaving(3)) == [[2], [2], [0], [1]]


def test_a_full_disk_gets_nothing_and_what_finds_no_place_is_counted_by_factor() -> None:
    brokers = Brokers.of(evolve(b, disk=100) for b in in_racks("___").rows)
    block = block_of([[2, 0], [2], [0], [1]], size=[60, 30, 40, 50])
    goal = leaving(2)
    done, tally = Deal(terms_of([block], brokers, goal), load_of([block], brokers), ALONE)(0, block)
    # 60 of the first and 40 fill broker 0; broker 1 has room for 30 only.
    assert lists_of(done.after) == [[0], [1], [0], [1]]
    assert tally["unplaced"].nonzero()[0].tolist() == [2, 2]
    assert tally["unplaced"][2].tolist() == [1, 60]


def test_a_large_disk_is_found_behind_many_small_ones() -> None:
    # All but the last broker are emptier than it, and too small.
    brokers = Brokers.of(evolve(b, disk=1_000 if b.id == 40 else 5) for b in in_racks("_" * 41).rows)
    block = block_of([[0], [40]], size=[10, 500])
    assert dealt(block, brokers, leaving(0)) == [[40], [40]]


def test_other_blocks_that_deal_at_the_same_time_are_left_room_on_disks() -> None:
    brokers = Brokers.of(evolve(b, disk=100) for b in in_racks("___").rows)
    block = block_of([[2], [0], [1]], size=[40, 40, 40])
    terms, load = terms_of([block], brokers, leaving(2)), load_of([block], brokers)
    unplaced = [int(Deal(terms, load, Turn(0, n, n))(0, block)[1]["unplaced"][:, 0].sum()) for n in (1, 2)]
    assert unplaced == [0, 1]


@pytest.mark.parametrize(
    ("holders", "limit", "full"), [([], 1, set()), ([0, 2], 1, {0, 1}), ([0, 2], 2, set()), ([4, 0, 1], 2, {0})]
)
def test_racks_that_have_their_limit(holders: list[int], limit: int, full: set[int]) -> None:
    assert full_racks(holders, [0, 0, 1, 1, -1], limit) == full
