from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from spark_bridge.kernel.leader_rounds import LeaderRounds
from spark_bridge.kernel.leader_view import LeaderView
from spark_bridge.kernel.leaders import choose_leaders
from spark_bridge.model.block import Block
from tests.spark.kernel.leader_cases import LeaderCase, cases, even


def split(case: LeaderCase, blocks: int) -> tuple[list[Block], list[NDArray[np.bool_]]]:
    """Deal a case's partitions into blocks, one after the other."""
    rows = [range(n, len(case.lists), blocks) for n in range(blocks)]
    return [case.block(r) for r in rows], [case.in_scope[r.start :: blocks] for r in rows]


def skewed(seed: int, partitions: int, brokers: int) -> list[Sequence[int]]:
    """Return lists of which a fifth are on a tenth of the brokers, and the newest tenth lead nothing."""
    rng = Random(seed)
    few = range(max(3, brokers // 10))
    new = brokers - brokers // 10
    drawn = [rng.sample(few if rng.random() < 0.2 else range(brokers), 3) for _ in range(partitions)]
    return [sorted(row, key=lambda b: b >= new) for row in drawn]


def farthest(case: LeaderCase, led: NDArray[np.int64]) -> float:
    return float((led / case.share).max())


@pytest.mark.parametrize("tolerance", [0.05, 0.001])
def test_blocks_bring_new_brokers_within_bounds_and_change_few_leaders(tolerance: float) -> None:
    rng = Random(1)
    drawn = [sorted(rng.sample(range(50), 3), key=lambda b: b >= 45) for _ in range(20_000)]
    case = even(drawn, 50, tolerance)
    blocks, scopes = split(case, 8)
    before = case.count(*blocks)
    after, turns = case.in_rounds(blocks, scopes)
    led = case.count(*after)
    assert np.all((case.lo <= led) & (led <= case.hi))
    assert turns <= 6
    changed = sum(int((a.after[:, 0] != b.after[:, 0]).sum()) for a, b in zip(after, blocks, strict=True))
    assert changed <= 1.01 * np.maximum(case.lo - before, 0).sum()


@pytest.mark.parametrize(
    ("partitions", "brokers", "blocks"),
    [(20_000, 30, 7), (20_000, 200, 16), pytest.param(40_000, 100, 40, marks=pytest.mark.soak)],
)
def test_what_cannot_be_even_ends_within_two_percent_of_one_block_alone(
    partitions: int, brokers: int, blocks: int
) -> None:
    case = even(skewed(2, partitions, brokers), brokers, 0.05)
    exact = case.count(case.solved())
    parts, scopes = split(case, blocks)
    after, _ = case.in_rounds(parts, scopes)
    led = case.count(*after)
    assert farthest(case, exact) > 1.05
    assert farthest(case, led) <= 1.02 * farthest(case, exact)
    assert led.min() >= 0.98 * exact.min()
    again, _ = case.in_rounds(after, scopes)
    assert all(a is b for a, b in zip(again, after, strict=True))


@given(cases(most_partitions=60, most_brokers=8), st.integers(2, 9))
def test_planning_again_in_rounds_changes_nothing(case: LeaderCase, blocks: int) -> None:
    parts, scopes = split(case, blocks)
    after, _ = case.in_rounds(parts, scopes)
    again, _ = case.in_rounds(after, scopes)
    assert all(a is b for a, b in zip(again, after, strict=True))


@given(cases(most_partitions=60, most_brokers=8), st.integers(2, 9))
def test_no_round_makes_things_worse(case: LeaderCase, blocks: int) -> None:
    parts, scopes = split(case, blocks)
    load = case.count(*parts)
    rounds = LeaderRounds(LeaderView(load, case.lo, case.hi, case.share, case.may_lead), blocks)

    def beyond(load: NDArray[np.int64]) -> int:
        off = np.maximum(load - case.hi, 0) + np.maximum(case.lo - load, 0)
        return int(np.where(case.may_lead, off, 0).sum() + 1_000 * load[~case.may_lead].sum())

    while (view := rounds.view(load)) is not None:
        parts = [choose_leaders(b, view, scope, n) for n, (b, scope) in enumerate(zip(parts, scopes, strict=True))]
        new = case.count(*parts)
        assert beyond(new) <= beyond(load)
        load = new


@given(st.integers(1, 40), st.integers(0, 30))
def test_every_unit_near_the_top_is_owned_by_one_block(copies: int, load: int) -> None:
    here = np.array([load, load + 7])
    view = LeaderView(here, here, here, here.astype(np.float64), here >= 0, copies=copies)
    tops = np.array([view.top(block) for block in range(copies)])
    for broker, leaders in enumerate(here):
        assert sorted(tops[:, broker].tolist()) == list(range(leaders - copies + 1, leaders + 1))


def test_a_block_that_does_not_act_stays_as_it_is() -> None:
    case = even([[0, 1]] * 8, 2, 0.05)
    block = case.block()
    assert choose_leaders(block, case.view(block), case.in_scope, number=1) is block


def test_one_block_needs_one_round_to_be_within_bounds() -> None:
    case = even(skewed(3, 500, 20), 20, 0.5)
    after, turns = case.in_rounds([case.block()], [case.in_scope])
    assert turns == 1
    assert case.count(*after).tolist() == case.count(case.solved()).tolist()
