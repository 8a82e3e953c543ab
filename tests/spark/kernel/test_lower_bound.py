"""The lower bound: forced moves, what leaves, what arrives, and the cheapest replicas for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from attrs import evolve

from spark_bridge.kernel.lower_bound import Costs, _cheapest, classes, lower_bound
from spark_bridge.kernel.tally import add
from spark_bridge.model.block import BYTES, Block
from spark_bridge.model.brokers import Broker, Brokers
from spark_bridge.model.goal import Goal, GoalKind
from tests.spark.kernel.small import REBALANCE, block_of, in_racks, load_of, terms_of
from tests.spark.planned import plan_blocks


def bound_of(brokers: Brokers, goal: Goal, *blocks: Block) -> int:
    terms, load = terms_of(blocks, brokers, goal), load_of(blocks, brokers)
    total: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]] = {}
    for number, block in enumerate(blocks):
        total = add(total, Costs(terms, load)(number, block))
    return lower_bound(terms, load, total)


def test_replicas_that_are_larger_than_a_share_need_not_move_to_who_gets_one() -> None:
    # The added broker's share is 60: the plan takes the least replica that fills it, and no bound may be above that.
    brokers = Brokers.of([*(Broker(n) for n in range(4)), Broker(4, capacity=2.0)])
    goal = Goal(GoalKind.ADD_BROKERS, frozenset({4}))
    planned = plan_blocks([block_of([[0], [1], [2], [3]], [10, 90, 70, 10])], brokers, goal)
    assert planned.bounds.after[4, BYTES] == 70
    assert 57 <= planned.bounds.lower_bound <= 70


@pytest.mark.parametrize("flow", [1_000, 5_000_000])
def test_rates_without_sizes_make_a_bound_in_replicas(flow: int) -> None:
    lists = [[0], [0], [0], [0], [1], [2]]
    block = block_of(lists, None, [flow] * 6)
    assert bound_of(in_racks("___"), REBALANCE, block) == 2


def remove(*brokers: int) -> Goal:
    return Goal(GoalKind.REMOVE_BROKERS, frozenset(brokers))


@pytest.mark.parametrize(
    ("goal", "racks", "lists", "size", "bound"),
    [
        # What is forced.
        (remove(0), "____", [[0], [1], [0]], [5, 70, 900], 905),
        (remove(0, 1), "____", [[0, 1], [1, 2]], [5, 70], 80),
        (Goal(GoalKind.REPAIR_RACKS), "aabb", [[0, 1], [0, 2]], [5, 70], 5),
        (Goal(GoalKind.REPAIR_RACKS), "abcd", [[0, 1], [0, 2]], [5, 70], 0),
        (Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=3), "____", [[0], [0, 1]], [5, 70], 80),
        (Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=1), "____", [[0], [0, 1]], [5, 70], 0),
        # What arrives: at least one replica.
        (Goal(GoalKind.ADD_BROKERS, frozenset({2})), "___", [[0], [1], [0]], [100, 100, 100], 100),
        # What leaves: two of three replicas, as there is one for each broker.
        (Goal(GoalKind.RELIEVE, frozenset({0})), "____", [[0], [0], [0], [1]], [100, 100, 100, 100], 200),
        (REBALANCE, "__", [[0], [0], [1], [1]], [10, 10, 10, 10], 0),
        # Nobody has a byte: replicas count.
        (remove(0), "____", [[0], [1], [0]], [0, 0, 0], 2),
        (Goal(GoalKind.ADD_BROKERS, frozenset({2})), "___", [[0], [1], [0]], [0, 0, 0], 1),
        (Goal(GoalKind.RELIEVE, frozenset({0})), "____", [[0], [0], [0], [1]], [0, 0, 0, 0], 2),
        (Goal(GoalKind.REPAIR_RACKS), "aabb", [[0, 1], [0, 2]], [0, 0], 1),
    ],
)
def test_no_plan_moves_fewer_bytes(
    goal: Goal, racks: str, lists: Sequence[Sequence[int]], size: Sequence[int], bound: int
) -> None:
    brokers = in_racks(racks)
    whole = bound_of(brokers, goal, block_of(lists, size))
    assert whole == bound
    # However partitions are dealt into blocks.
    split = [Block.of([("t", n)], [row], [size[n]], [0], [0]) for n, row in enumerate(lists)]
    assert bound_of(brokers, goal, *split) == bound


def test_replicas_that_have_to_leave_cost_the_smallest() -> None:
    # 30 and 10 replicas: 9 have to go for 21, and the nine smallest of broker 0 have 1 + ... + 9 bytes. The larger
    # broker has fewer bytes, so that bytes alone ask for nothing.
    size = [*range(1, 31), *([1000] * 10)]
    found = bound_of(in_racks("__"), Goal(GoalKind.RELIEVE, frozenset({0})), block_of([[0]] * 30 + [[1]] * 10, size))
    assert 0.9 * 45 <= found <= 45


def test_bytes_in_that_have_to_leave_cost_the_fewest_bytes_for_them() -> None:
    # Broker 0 has 1200 of 1600 bytes in, and 800 and 5 % is the most: 360 leave. Cheapest is a tenth of a byte each.
    size, bytes_in = [10] * 4 + [1000] * 8, [100] * 12
    block = block_of([[0]] * 12 + [[1]] * 12, [*size, *([900] * 12)], [*bytes_in, *([34] * 12)])
    found = bound_of(in_racks("__"), Goal(GoalKind.RELIEVE, frozenset({0})), block)
    need = 1200 - int(0.5 * (1200 + 12 * 34) * 1.05)
    assert 0.9 * need / 10 <= found <= 40


def test_replicas_that_bring_nothing_of_a_measure_cost_nothing_for_it() -> None:
    # All bytes in of broker 0 have to leave, and only the first partition has any; bytes themselves may stay.
    block = block_of([[0], [0], [0], [1], [1]], [10, 10, 900, 900, 900], [70, 0, 0, 0, 0])
    brokers = in_racks("___")
    terms = terms_of([block], brokers, Goal(GoalKind.RELIEVE, frozenset({0})))
    load = load_of([block], brokers)
    high = np.where([False, False, True], 0, np.maximum(terms.high, load))
    costs = Costs(evolve(terms, high=high), load)(0, block)
    assert 9 <= lower_bound(evolve(terms, high=high), load, costs) <= 10


@pytest.mark.parametrize(
    ("need", "least"), [(-3, 0), (0, 0), (1, 0), (2, 0), (3, 2), (4, 4), (5, 9), (6, 14), (7, 18), (8, 18)]
)
def test_classes_are_taken_in_order_and_of_the_last_what_is_left_at_the_least_it_can_cost(
    need: int, least: int
) -> None:
    # Two for nothing, two at two or more, two at five each, one at four or more.
    gain, cost = np.array([2, 2, 2, 1]), np.array([0, 4, 10, 4])
    assert _cheapest(need, gain, cost, np.array([0.0, 2.0, 5.0, 4.0])) == least


@pytest.mark.parametrize(("brokers", "most"), [(1, 4_000), (30, 4_000), (1_000, 200), (5_000, 50)])
def test_there_are_finer_classes_for_fewer_brokers(brokers: int, most: int) -> None:
    ends = classes(brokers)
    assert len(ends) <= most
    assert ends[0] == 0
    assert (np.diff(ends) > 0).all()
    assert ends[-1] < 2.0**48 <= ends[-1] * 2


def test_what_blocks_tell_of_costs_does_not_grow_with_partitions() -> None:
    brokers = in_racks("____")
    for count in (10, 1_000):
        block = block_of([[n % 4] for n in range(count)], [1 + n * n for n in range(count)], [1] * count)
        tally = Costs(terms_of([block], brokers), load_of([block], brokers))(0, block)
        assert len(tally.pop("forced")) == 2
        assert {array.shape[1] for array in tally.values()} == {len(classes(len(brokers)))}
        assert all(len(array) <= len(brokers) + 1 for array in tally.values())
        assert tally["count"].sum() == count
        assert tally["cost"].sum() == sum(1 + n * n for n in range(count))
