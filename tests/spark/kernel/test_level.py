"""Levels, the replicas that are given to reach them, and the moves of a round of levelling."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from spark_bridge.kernel.level import Level, _order, _sample, levels
from spark_bridge.kernel.tally import moved
from spark_bridge.kernel.terms import UNBOUNDED, Terms
from spark_bridge.kernel.view import Turn
from spark_bridge.model.block import BYTES, REPLICAS, Block
from spark_bridge.model.brokers import Broker, Brokers
from spark_bridge.model.goal import Goal, GoalKind
from tests.spark.kernel.small import REBALANCE, block_of, in_racks, lists_of, load_of, terms_of


def terms_for(count: int, goal: Goal, brokers: Brokers | None = None) -> Terms:
    """Return the terms for a hundred replicas of a hundred bytes on average for each broker."""
    lists = [[b] for b in range(count)] * 100
    return terms_of([block_of(lists, [100] * len(lists), [1] * len(lists))], brokers or in_racks("_" * count), goal)


def loads_of(*replicas: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.array([[n, 100 * n, n] for n in replicas])


def test_whoever_is_above_the_bounds_gives_down_to_them() -> None:
    found = levels(terms_for(4, REBALANCE), loads_of(130, 90, 90, 90))
    assert found.keep[:, REPLICAS].tolist() == [105] * 4
    # What fits below the shares of the others need not go beyond them.
    assert found.limit[:, REPLICAS].tolist() == [100] * 4


def test_takers_fill_up_beyond_their_shares_only_as_far_as_what_leaves_needs_room() -> None:
    terms = terms_for(4, REBALANCE)
    # 20 have to leave, and below the shares of others there is room for 15.
    found = levels(terms, loads_of(125, 95, 90, 90 + 10))
    assert found.limit[:, REPLICAS].max() in {102, 103}
    assert (found.limit[:, BYTES] <= terms.high[:, BYTES]).all()


def test_givers_go_down_to_a_common_part_where_more_is_missing_than_too_much() -> None:
    # 95 are missing on the last; three givers above 105 have nothing to give by the bounds alone.
    found = levels(terms_for(4, Goal(GoalKind.ADD_BROKERS, frozenset({3}))), loads_of(140, 130, 130, 0))
    assert found.keep[:3, REPLICAS].tolist() == [102, 102, 102]
    assert found.keep[3, REPLICAS] == UNBOUNDED
    assert found.limit[:3].tolist() == [[0, 0, 0]] * 3
    assert 95 <= found.limit[3, REPLICAS] <= 105


def test_measures_that_are_not_levelled_are_bounded_for_takers_alone() -> None:
    terms = terms_for(4, REBALANCE)
    found = levels(terms, loads_of(130, 90, 90, 90), (REPLICAS,))
    assert (found.keep[:, 1:] == UNBOUNDED).all()
    assert (found.limit[:, 1:] == terms.high[:, 1:]).all()


def test_nobody_takes_more_than_its_disk_holds() -> None:
    brokers = Brokers.of(Broker(b, disk=9_000) for b in range(4))
    assert levels(terms_for(4, REBALANCE, brokers), loads_of(130, 90, 90, 90)).limit[:, BYTES].tolist() == [9_000] * 4


def test_when_nobody_has_to_move_only_who_is_above_the_bounds_would_give() -> None:
    found = levels(terms_for(4, Goal(GoalKind.REPAIR_RACKS)), loads_of(130, 90, 90, 90))
    assert (found.keep == UNBOUNDED).all()
    assert not found.limit.any()


@pytest.mark.parametrize("count", [1, 5, 40, 99])
@pytest.mark.parametrize("mean", [20, 60, 100, 180])
def test_a_sample_has_as_many_of_about_the_wanted_mean(count: int, mean: int) -> None:
    size = np.sort(np.random.default_rng(4).exponential(100, 400))[::-1]
    picked = _sample(size, count, count * mean)
    assert len(picked) == len(set(picked.tolist())) == count
    assert size[picked].sum() == pytest.approx(count * mean, rel=0.25 if count > 1 else 1.0, abs=float(size.max()) / 2)


def test_a_sample_takes_what_there_is_where_the_wanted_mean_is_out_of_reach() -> None:
    size = np.array([9.0, 5.0, 1.0])
    assert _sample(size, 2, 40.0).tolist() == [0]
    assert _sample(size, 3, 15.0).tolist() == [0, 1, 2]
    assert _sample(size, 9, 45.0).tolist() == [0, 1, 2]
    assert _sample(size, 1, 1.0).tolist() == [2]
    assert set(_sample(size, 2, 1.0).tolist()) <= {0, 1, 2}


def test_a_sample_leaves_out_the_largest_or_the_smallest_until_the_mean_is_the_wanted_one() -> None:
    size = np.array([90.0, 50.0, 10.0, 0.0])
    assert _sample(size, 1, 5.0).tolist() == [3]
    assert _sample(size, 1, 60.0).tolist() == [1]
    assert _sample(size, 2, 140.0).tolist() == [0, 1]


WEIGHTS = np.array([[1, 50, 5], [1, 10, 9], [1, 90, 1], [1, 0, 0]])
TIE = np.arange(4, dtype=np.uint32)


@pytest.mark.parametrize(
    ("needed", "order"),
    [
        # Bytes alone: largest first. Replicas or bytes in alone: what costs the fewest bytes for it.
        ((1,), [2, 0, 1, 3]),
        ((0,), [3, 1, 0, 2]),
        ((2,), [3, 1, 0, 2]),
        ((1, 2), [2, 0, 1, 3]),
        # Replicas and bytes: first as many as are needed with about as many bytes together (60: 50 and 0).
        ((0, 1), [0, 3, 2, 1]),
    ],
)
def test_in_which_order_replicas_are_given(needed: tuple[int, ...], order: list[int]) -> None:
    assert _order(WEIGHTS, TIE, [2.0, 60.0, 6.0], needed, BYTES).tolist() == order


def test_equal_replicas_are_given_in_the_order_of_their_names_hash() -> None:
    same = np.array([[1, 5, 5]] * 4)
    for needed in ((0,), (1,), (2,)):
        assert _order(same, TIE[::-1], [1, 5, 5], needed, BYTES).tolist() == [3, 2, 1, 0]


def levelled(block: Block, brokers: Brokers, goal: Goal = REBALANCE) -> tuple[Block, int]:
    terms, load = terms_of([block], brokers, goal), load_of([block], brokers)
    done, tally = Level(terms, load, Turn(0, 1, 1), levels(terms, load))(0, block)
    assert np.array_equal(tally["load"], load_of([done], brokers))
    return done, int(moved(done).sum())


def test_levelling_moves_what_is_too_much_to_the_emptiest_and_keeps_racks_apart() -> None:
    block = block_of([[0, 2 + n % 2] for n in range(8)])
    done, moves = levelled(block, in_racks("aabb"))
    assert moves == 4
    assert load_of([done], in_racks("aabb"))[:, REPLICAS].tolist() == [4, 4, 4, 4]
    assert all(one in {0, 1} and two in {2, 3} for one, two in lists_of(done.after))


def test_levelling_changes_nothing_within_the_bounds() -> None:
    block = block_of([[0], [1], [2], [3]], size=[100, 101, 99, 100], bytes_in=[1] * 4)
    done, moves = levelled(block, in_racks("____"))
    assert moves == 0
    assert np.array_equal(done.after, block.after)


def test_only_takers_get_and_only_givers_lose() -> None:
    block = block_of([[n % 3] for n in range(30)])
    done, moves = levelled(block, in_racks("____"), Goal(GoalKind.ADD_BROKERS, frozenset({3})))
    # Each goes down to eight, rounded up from seven and two thirds.
    assert moves == 6
    assert load_of([done], in_racks("____"))[3, REPLICAS] == moves
    brokers, relieve = in_racks("____"), Goal(GoalKind.RELIEVE, frozenset({0}))
    uneven = block_of([[0]] * 12 + [[1]] * 8, size=[10] * 20, bytes_in=[1] * 20)
    assert load_of([levelled(uneven, brokers, relieve)[0]], brokers)[1, REPLICAS] == 8


def test_with_many_copies_a_block_gives_its_part() -> None:
    block = block_of([[0]] * 60 + [[1]] * 20, size=[10] * 80, bytes_in=[1] * 80)
    brokers = in_racks("__")
    load = load_of([block], brokers) * 4
    terms = evolve(terms_of([block] * 4, brokers), low=np.zeros((2, 3), np.int64))
    done = [Level(terms, load, Turn(0, 4, 4), levels(terms, load))(n, block)[0] for n in range(4)]
    moves = [int(moved(block).sum()) for block in done]
    # 240 have to come down to 168: 72 by four.
    assert sum(moves) in range(68, 83)
    assert all(n in range(16, 22) for n in moves)


def test_a_rack_that_is_too_full_already_may_get_what_one_of_it_gives() -> None:
    # Three of each partition are in a rack that may have two; relieving makes that no worse, and repairs nothing.
    block = block_of([[0, 1, 2]] * 8 + [[5, 4, 3]] * 2 + [[5, 3, 1]] * 4)
    done, moves = levelled(block, in_racks("aaabab"), Goal(GoalKind.RELIEVE, frozenset({0})))
    assert moves > 0
    assert {4} == {b for row in lists_of(done.after)[:8] for b in row} - {0, 1, 2}


def test_nobody_gives_what_brings_nothing_of_what_is_needed() -> None:
    # 30 bytes are too much, and the replicas that are left when one of 20 is gone are too large, or empty.
    block = block_of([[0]] * 40 + [[1]] * 20, size=[100, 20, *[0] * 38, 90, *[0] * 19])
    brokers = in_racks("__")
    high = np.array([[60, 90, UNBOUNDED], [60, 200, UNBOUNDED]])
    terms = evolve(terms_of([block], brokers), low=np.zeros_like(high), high=high)
    load = load_of([block], brokers)
    done, _ = Level(terms, load, Turn(0, 1, 1), levels(terms, load))(0, block)
    assert moved(done).sum() == 1


def test_nobody_gives_empty_replicas_once_enough_replicas_have_left() -> None:
    # Five replicas are too many, and bytes are still too many when these have left; what is left is large or empty.
    block = block_of([[0]] * 40 + [[1]] * 10, size=[20, 20, 20, 20, *[0] * 36, 60, *[0] * 9])
    brokers = in_racks("__")
    high = np.array([[35, 35, UNBOUNDED], [60, 200, UNBOUNDED]])
    terms = evolve(terms_of([block], brokers), low=np.zeros_like(high), high=high)
    load = load_of([block], brokers)
    done, tally = Level(terms, load, Turn(0, 1, 1), levels(terms, load))(0, block)
    assert tally["load"][0, REPLICAS] == 35
    assert moved(done).sum() == 5


@pytest.mark.parametrize("goal", [REBALANCE, Goal(GoalKind.RELIEVE, frozenset({0}))], ids=["rebalance", "relieve"])
@pytest.mark.parametrize("seed", range(10))
def test_blocks_that_level_at_once_overfill_no_disk_together(seed: int, goal: Goal) -> None:
    rng = np.random.default_rng(seed)
    count, size = 6, np.ceil(100 * rng.pareto(1.2, 120) + 1).astype(np.int64)
    lists = [[0] if rng.random() < 0.4 else [int(rng.integers(count))] for _ in size]
    blocks = [block_of(lists[n::4], size[n::4].tolist(), [1] * len(size[n::4])) for n in range(4)]
    # Nearly what everybody would have is what fits.
    disk = int(size.sum() / count * 1.02)
    load = load_of(blocks, in_racks("_" * count))
    brokers = Brokers.of(Broker(b, disk=max(disk, int(load[b, BYTES])) if b == 0 else disk) for b in range(count))
    terms = terms_of(blocks, brokers, goal)
    level = Level(terms, load, Turn(1, 4, 4), levels(terms, load))
    after = load_of([level(n, block)[0] for n, block in enumerate(blocks)], brokers)
    # Nobody gets more on a disk that is too full, or too much on another.
    assert (after[:, BYTES] <= np.maximum(brokers.disk, load[:, BYTES])).all()
    assert after[0, BYTES] < load[0, BYTES]
