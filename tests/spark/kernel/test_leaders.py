from __future__ import annotations

from random import Random

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings, strategies as st

from spark_bridge.kernel.leaders import choose_leaders
from spark_bridge.model.block import NOBODY
from tests.spark.kernel.leader_cases import LeaderCase, cases, even, feasible, fewest_changes, price


def leaders(case: LeaderCase) -> tuple[int, ...]:
    return tuple(case.solved().after[:, 0].tolist())


@given(cases(), st.integers(1, 4), st.integers(1, 4))
def test_no_other_choice_is_cheaper_whatever_height_costs(case: LeaderCase, over: int, under: int) -> None:
    assert price(case, leaders(case), over, under) == min(price(case, c, over, under) for c in case.choices())


@given(cases())
def test_no_other_choice_as_good_changes_fewer_leaders(case: LeaderCase) -> None:
    chosen = leaders(case)
    best = price(case, chosen, 2, 3)
    assert case.changes(chosen) == min(case.changes(c) for c in case.choices() if price(case, c, 2, 3) == best)


@given(cases())
def test_choosing_again_changes_nothing(case: LeaderCase) -> None:
    once = case.solved()
    assert case.solved(once) is once


@given(cases(most_partitions=40, most_brokers=9))
def test_replicas_stay_and_only_one_comes_to_the_front(case: LeaderCase) -> None:
    block = case.block()
    for before, after, free in zip(block.after, case.solved().after, case.in_scope, strict=True):
        assert after[1:].tolist() == [r for r in before.tolist() if r != after[0]]
        assert after[0] == before[0] or (free and case.may_lead[after[0]])


@given(cases(most_partitions=40, most_brokers=9))
def test_a_broker_that_may_not_lead_loses_all_it_can(case: LeaderCase) -> None:
    for row, leader, free in zip(case.lists, leaders(case), case.in_scope, strict=True):
        assert case.may_lead[leader] or not (free and case.may_lead[list(row)].any())


def test_bounds_that_hold_leave_the_block_as_it_is() -> None:
    case = even([[0, 1], [1, 2], [2, 0]] * 4, 3, 0.05)
    block = case.block()
    assert case.solved(block) is block


def test_a_leadership_goes_a_long_way_round_where_there_is_no_other() -> None:
    # Broker 0 leads two and the last none; neighbours alone share partitions.
    lists = [[0, 1], [0, 1], *([n, n + 1] for n in range(1, 9))]
    case = even([*lists, [9, 8]][:-1], 10, 0.05)
    assert case.count(case.solved()).tolist() == [1] * 10


def test_what_a_broker_has_too_many_is_spread_over_those_with_room() -> None:
    others = range(1, 11)
    lists = [[0, *others]] * 60 + [[n, 0] for n in others for _ in range(4)]
    case = even(lists, 11, 0.5)
    assert case.count(case.solved())[1:].max() < case.hi[0]


def test_what_cannot_be_within_bounds_ends_as_near_as_can_be() -> None:
    # Twelve partitions are on brokers 0 to 2 alone, four on 3 and 4: the share is 3.2, and 4 the least of the highest.
    case = even([[0, 1, 2]] * 12 + [[3, 4]] * 4, 5, 0.05)
    assert case.count(case.solved()).tolist() == [4, 4, 4, 2, 2]


def test_larger_shares_lead_more() -> None:
    case = even([[0, 1, 2]] * 12, 3, 0.05)
    share = np.array([6.0, 4.0, 2.0])
    whole = share.astype(np.int64)
    assert case.count(evolve(case, lo=whole, hi=whole, share=share).solved()).tolist() == [6, 4, 2]


def test_lists_of_different_lengths_are_filled_up_at_the_end() -> None:
    after = even([[0, 1, 2], [0, 1], [0]], 3, 0.05).solved().after.tolist()
    assert after == [[2, 0, 1], [1, 0, NOBODY], [0, NOBODY, NOBODY]]


def test_no_partitions_are_no_trouble() -> None:
    case = even([], 2, 0.05)
    elsewhere = evolve(case.view(case.block()), load=np.array([9, 0]))
    assert len(choose_leaders(case.block(), elsewhere, case.in_scope)) == 0


def random_lists(seed: int, partitions: int, brokers: int, factor: int) -> list[list[int]]:
    rng = Random(seed)
    return [rng.sample(range(brokers), factor) for _ in range(partitions)]


@pytest.mark.parametrize("seed", range(5))
def test_256_partitions_on_23_brokers_are_as_even_as_a_maximum_flow_can_make_them(seed: int) -> None:
    # The shape of kafka-kit's own fixture, whose optimizer leaves 3..23 of 2..26; skewed, so that even is out of reach.
    rng = Random(seed)
    weight = [0.2 + rng.random() ** 2 for _ in range(23)]
    lists: list[list[int]] = []
    while len(lists) < 256:
        pair = rng.choices(range(23), weight, k=2)
        if pair[0] != pair[1]:
            lists.append(pair)
    case = even(lists, 23, 0.01)
    led = case.count(case.solved())
    least, most = int(led.min()), int(led.max())
    assert feasible(lists, least, most, 23)
    assert not feasible(lists, 0, most - 1, 23)
    assert not feasible(lists, least + 1, 256, 23)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tolerance", [0.001, 0.05, 0.2])
def test_changes_are_as_few_as_integer_programming_finds(seed: int, tolerance: float) -> None:
    case = even(random_lists(seed, 1_000, 30, 3), 30, tolerance)
    assert case.changes(leaders(case)) == fewest_changes(case)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(20, 200), st.integers(4, 12), st.integers(2, 3))
def test_changes_stay_few_where_brokers_have_little_in_common(seed: int, count: int, brokers: int, factor: int) -> None:
    rng = Random(seed)
    first = [int(brokers * rng.random() ** 2) for _ in range(count)]
    case = even([[(n + k) % brokers for k in range(factor)] for n in first], brokers, 0.3)
    fewest = fewest_changes(case)
    if fewest is not None:
        assert case.changes(leaders(case)) == fewest
