"""The order of replica lists: replicas that stay keep their place, whatever path others took during planning."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from spark_bridge.engines.in_process import InProcess
from spark_bridge.kernel import polish
from spark_bridge.kernel.leaders import in_order
from spark_bridge.model.block import NOBODY, Block, padded
from spark_bridge.model.brokers import Broker, Brokers
from spark_bridge.model.goal import Goal, GoalKind, LeaderScope
from spark_bridge.planning import plan_cluster


@pytest.mark.parametrize(
    ("before", "after", "ordered"),
    [
        ([1, 2, 3], [1, 2, 3], [1, 2, 3]),
        ([1, 2, 3], [3, 1, 2], [1, 2, 3]),
        ([1, 2, 3], [4, 3, 1], [1, 4, 3]),
        ([1, 2, 3], [5, 3, 4], [5, 4, 3]),
        ([1, 2, 3], [6, 5, 4], [6, 5, 4]),
        # A smaller factor leaves no gap, a greater one adds at the end.
        ([1, 2, 3], [3, 1], [1, 3]),
        ([1, 2, 3], [3, 4], [4, 3]),
        ([1, 2], [4, 2, 1, 3], [1, 2, 4, 3]),
        ([1, 2], [4, 2, 5, 3], [4, 2, 5, 3]),
        ([1], [2, 3, 4], [2, 3, 4]),
    ],
)
def test_what_stays_keeps_its_place_and_what_is_new_takes_those_of_what_left(
    before: list[int], after: list[int], ordered: list[int]
) -> None:
    wide = [[1, 2, 3, 4], [9, 8, 7, 6]]
    found = in_order(padded([before, wide[0]]), padded([after, wide[1]]))
    assert found[0].tolist() == [*ordered, *[NOBODY] * (4 - len(ordered))]
    assert found[1].tolist() == wide[1]
    narrow = in_order(np.array([before], np.int32), np.array([after], np.int32))
    assert narrow[0].tolist() == ordered


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("scope", [LeaderScope.NONE, LeaderScope.TOUCHED])
def test_a_rebalance_changes_no_list_but_by_what_moves(
    scope: LeaderScope, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polish, "_MOST_STEPS", 3_000)
    rng = Random(seed)
    lists = [rng.sample(range(6), 3) for _ in range(30)]
    sizes, rates = ([rng.randint(1, 100) for _ in lists] for _ in range(2))
    engine = InProcess([Block.of([("t", n) for n in range(30)], lists, sizes, rates, [0] * 30)])
    goal = Goal(GoalKind.REBALANCE, leaders=scope)
    plan_cluster(engine, Brokers.of(Broker(n) for n in range(6)), goal, lambda _: None)
    (block,) = engine.held
    for old, new in zip(block.before.tolist(), block.after.tolist(), strict=True):
        if set(old) == set(new):
            assert old == new
        elif scope is LeaderScope.NONE:
            assert all(was == now or was not in new for was, now in zip(old, new, strict=True))
