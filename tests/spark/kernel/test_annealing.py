"""The running totals of annealing, compared with a recount."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from spark_bridge.kernel.annealing import Annealing
from tests.spark.kernel.instances import instance
from tests.spark.kernel.small import terms_of

_STEPS = 2_000
"""So many that replicas leave home and return."""


@pytest.mark.parametrize("seed", [seed for seed in range(16) if instance(seed).kind in {"add", "rebalance"}])
def test_what_each_move_changes_is_what_counting_anew_gives(seed: int) -> None:
    given = instance(seed)
    block = given.block()
    terms = terms_of([block], given.brokers, given.goal)
    annealed = Annealing.of(block, terms, Random(seed))
    annealed.run(_STEPS, temperature=8.0)
    after = np.array(annealed.lists.brokers, np.int32).reshape(block.after.shape)
    anew = Annealing.of(block.with_after(after), terms, Random(seed))
    assert (after != block.after).any()
    assert annealed.load == anew.load
    assert annealed.outs == anew.outs
    assert annealed.value[1:] == anew.value[1:]
    assert annealed.violation == pytest.approx(anew.violation, abs=1e-8)
    lists, counted = annealed.lists, anew.lists
    assert (lists.racks, lists.away, lists.empty) == (counted.racks, counted.away, counted.empty)
    assert (lists.news, lists.replaced) == (counted.news, counted.replaced)
    assert sorted(lists.rows_away.members) == counted.rows_away.members
