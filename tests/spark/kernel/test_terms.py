"""The terms of a plan: giving, taking and leaving brokers, the shares, and the bounds around them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from attrs import evolve

from spark_bridge.errors import PlanError
from spark_bridge.kernel.terms import UNBOUNDED, wanted_factors
from spark_bridge.model.block import BYTES, BYTES_IN, REPLICAS, Block
from spark_bridge.model.brokers import Broker, Brokers, BrokerState
from spark_bridge.model.goal import MOST_REPLICAS, Goal, GoalKind
from tests.spark.kernel.small import block_of, in_racks, terms_of

STATES = {
    "l": BrokerState.LIVE,
    "x": BrokerState.EXCLUDED,
    "d": BrokerState.DRAINING,
    "-": BrokerState.DEAD,
}


def in_states(states: str) -> Brokers:
    return Brokers.of(Broker(id_, state=STATES[state]) for id_, state in enumerate(states))


def even_block(brokers: int, size: int = 100, bytes_in: int = 10) -> Block:
    """Return a block with four partitions on every broker and the one after it."""
    lists = [[b, (b + 1) % brokers] for b in range(brokers)] * 4
    return block_of(lists, [size] * len(lists), [bytes_in] * len(lists))


def where(flags: Sequence[bool]) -> str:
    return "".join(str(b) for b in np.flatnonzero(flags))


@pytest.mark.parametrize(
    ("states", "goal", "receives", "leaves", "gives", "takes", "sheds"),
    [
        ("llll", Goal(GoalKind.REBALANCE), "0123", "", "0123", "0123", "0123"),
        ("lxd-", Goal(GoalKind.REBALANCE), "0", "2", "0", "0", "0"),
        ("lxd-", Goal(GoalKind.REBALANCE, dead_is_gone=True), "0", "23", "0", "0", "0"),
        ("llll", Goal(GoalKind.REBALANCE, exclude=frozenset({1})), "023", "", "023", "023", "023"),
        ("llll", Goal(GoalKind.ADD_BROKERS, frozenset({3})), "0123", "", "012", "3", ""),
        ("lxdl", Goal(GoalKind.ADD_BROKERS, frozenset({3})), "03", "2", "0", "3", ""),
        ("llll", Goal(GoalKind.REMOVE_BROKERS, frozenset({1, 2})), "03", "12", "", "", ""),
        ("ll-l", Goal(GoalKind.REMOVE_BROKERS, frozenset({1})), "03", "1", "", "", ""),
        ("ll-l", Goal(GoalKind.REMOVE_BROKERS, frozenset({1, 2})), "03", "12", "", "", ""),
        ("ll-l", Goal(GoalKind.REMOVE_BROKERS, frozenset({1}), dead_is_gone=True), "03", "12", "", "", ""),
        ("llld", Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=3), "012", "3", "", "", ""),
        ("llll", Goal(GoalKind.REPAIR_RACKS), "0123", "", "", "", ""),
        # Relieving moves nothing but what is on the named, not even from the dead.
        ("lxd-", Goal(GoalKind.RELIEVE, frozenset({1})), "0", "", "1", "0", "1"),
    ],
)
def test_who_takes_which_part(
    states: str, goal: Goal, receives: str, leaves: str, gives: str, takes: str, sheds: str
) -> None:
    terms = terms_of([even_block(4)], in_states(states), goal)
    parts = (terms.receives, terms.leaves, terms.gives, terms.takes, terms.sheds)
    assert tuple(where(part.tolist()) for part in parts) == (receives, leaves, gives, takes, sheds)


def test_shares_go_by_capacity_in_every_measure_and_bounds_by_tolerance() -> None:
    brokers = Brokers.of([Broker(0), Broker(1), Broker(2, capacity=2.0)])
    # 24 replicas, 2400 bytes and 240 bytes in; each broker can hold 12 replicas.
    terms = terms_of([even_block(3)], brokers, Goal(GoalKind.REBALANCE, tolerance=0.1))
    assert terms.share == pytest.approx(np.array([[6, 600, 60], [6, 600, 60], [12, 1200, 120]]), rel=1e-6)
    assert (np.abs(terms.low - [[6, 540, 54], [6, 540, 54], [11, 1080, 108]]) <= [0, 1, 1]).all()
    assert (np.abs(terms.high - [[6, 660, 66], [6, 660, 66], [13, 1320, 132]]) <= [0, 1, 1]).all()


def test_what_excluded_brokers_keep_is_not_shared_out_and_what_leaves_others_is() -> None:
    kept = terms_of([even_block(4)], in_states("llxl"))
    assert kept.share[:, REPLICAS] == pytest.approx([8, 8, 1e-6, 8])
    left = terms_of([even_block(4)], in_states("lld-"), Goal(GoalKind.REBALANCE, dead_is_gone=True))
    assert left.share[:, REPLICAS] == pytest.approx([16, 16, 1e-6, 1e-6])


def test_a_rack_that_can_hold_less_than_its_brokers_part_shares_that_out_among_them() -> None:
    # Three racks hold a replica of every partition each, however many brokers they have.
    brokers = in_racks("abcccc")
    lists = [[0, 1, 2 + n % 4] for n in range(8)]
    assert terms_of([block_of(lists)], brokers).share[:, REPLICAS] == pytest.approx([8, 8, 2, 2, 2, 2])
    unracked = terms_of([block_of(lists)], brokers, Goal(GoalKind.REBALANCE, racks=False))
    assert unracked.share[:, REPLICAS] == pytest.approx([4] * 6)


def test_a_disk_is_an_upper_bound_of_bytes() -> None:
    brokers = Brokers.of([Broker(0, disk=650), Broker(1), Broker(2)])
    terms = terms_of([even_block(3)], brokers)
    assert terms.high[:, BYTES].tolist()[0] == 650
    assert terms.high[1, BYTES] > 800


def test_a_measure_that_nobody_knows_bounds_nothing() -> None:
    terms = terms_of([even_block(3, size=0)], in_racks("___"))
    assert terms.low[:, BYTES].tolist() == [0, 0, 0]
    assert terms.high[:, BYTES].tolist() == [UNBOUNDED] * 3
    assert terms.high[:, BYTES_IN].max() < UNBOUNDED
    assert terms.high[:, REPLICAS].tolist() == [8, 8, 8]


def test_nobody_has_to_be_filled_but_for_evenness() -> None:
    assert not terms_of([even_block(4)], in_racks("____"), Goal(GoalKind.REMOVE_BROKERS, frozenset({0}))).low.any()


def test_who_is_relieved_keeps_half_a_share_of_each_measure_or_what_it_has_of_it() -> None:
    block = block_of([[0]] * 12 + [[1]] * 8 + [[2]] * 2 + [[3]] * 10, [100] * 32)
    low = terms_of([block], in_racks("____"), Goal(GoalKind.RELIEVE, frozenset({0, 2}))).low
    assert low[:, REPLICAS].tolist() == [4, 0, 2, 0]
    assert low[:, BYTES].tolist() == [380, 0, 200, 0]


@pytest.mark.parametrize("state", "lxd-")
def test_what_leaves_a_relieved_broker_changes_nobodys_share(state: str) -> None:
    brokers, goal = in_states(f"{state}lll"), Goal(GoalKind.RELIEVE, frozenset({0}), dead_is_gone=True)
    before, after = (block_of([[b, 2 + n % 2] for n in range(12)], [100] * 12) for b in (0, 1))
    assert terms_of([after], brokers, goal).share.tolist() == terms_of([before], brokers, goal).share.tolist()


def test_only_added_brokers_have_to_be_filled() -> None:
    low = terms_of([even_block(4)], in_racks("____"), Goal(GoalKind.ADD_BROKERS, frozenset({2}))).low
    assert np.flatnonzero(low.any(axis=1)).tolist() == [2]


def test_violations_are_parts_of_shares_beyond_the_bounds() -> None:
    terms = terms_of([even_block(4)], in_racks("____"), Goal(GoalKind.REBALANCE, tolerance=0.25))
    load = np.array([[8, 800, 80], [12, 800, 80], [4, 800, 80], [8, 1400, 40]])
    out = terms.violations(load)
    assert out[:, REPLICAS] == pytest.approx([0, 0.25, 0.25, 0])
    assert out[:, BYTES] == pytest.approx([0, 0, 0, 0.5])
    assert out[:, BYTES_IN] == pytest.approx([0, 0, 0, 0.25])
    assert terms.violation(load) == pytest.approx([0, 0.25, 0.25, 0.75])
    assert terms.fullness(load) == pytest.approx([1, 1.5, 1, 1.75])


def test_who_sheds_nothing_is_never_too_full() -> None:
    terms = terms_of([even_block(4)], in_racks("____"), Goal(GoalKind.ADD_BROKERS, frozenset({0})))
    load = np.array([[8, 800, 80]] * 3 + [[99, 9900, 990]])
    assert terms.violation(load).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("topics", "factors"),
    [((), [5, 5, 5]), (("a",), [5, 1, 2]), (("b*",), [1, 5, 5]), (("A", "bb"), [1, 1, 5]), (("?",), [5, 5, 2])],
)
def test_which_topics_get_the_new_factor(topics: tuple[str, ...], factors: list[int]) -> None:
    block = Block.of([("a", 0), ("b", 0), ("bb", 0)], [[0], [1], [0, 1]], [0] * 3, [0] * 3, [0] * 3)
    assert wanted_factors(block, 5, topics).tolist() == factors
    assert wanted_factors(block, None, topics).tolist() == [1, 1, 2]


def test_a_broker_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(PlanError, match=r"^broker 7, 9 is not in the snapshot: choose from 0, 1$"):
        terms_of([block_of([[0, 1]])], in_racks("__"), Goal(GoalKind.REMOVE_BROKERS, frozenset({9, 7, 1})))
    with pytest.raises(PlanError, match=r"^broker 8 is not in the snapshot"):
        terms_of([block_of([[0, 1]])], in_racks("__"), Goal(GoalKind.REBALANCE, exclude=frozenset({8})))


def test_racks_that_do_not_count_limit_nothing() -> None:
    goal = Goal(GoalKind.REBALANCE, racks=False)
    terms = terms_of([even_block(4)], in_racks("aaab"), goal)
    assert not terms.repairs
    assert terms.limits.tolist() == [0, 1, 1, 1, 1, *range(5, MOST_REPLICAS + 1)]
    assert terms_of([even_block(4)], in_racks("aaab"), evolve(goal, racks=True)).repairs
    assert not terms_of([even_block(4)], in_racks("aaab"), Goal(GoalKind.RELIEVE, frozenset({0}))).repairs
