"""Shares of the planner against linear programs that cut partitions up."""

from __future__ import annotations

import numpy as np
import pytest

from spark_bridge.drawing_up import AtFirst
from spark_bridge.engines.in_process import InProcess
from spark_bridge.kernel.shares import bounds, shares, whole_bounds
from spark_bridge.kernel.terms import make_terms
from tests.spark.kernel.exact import Problem
from tests.spark.kernel.fair import fair_shares
from tests.spark.kernel.instances import Instance, instance
from tests.spark.shapes.clusters import shaped


@pytest.mark.parametrize(
    "given",
    [
        *(pytest.param(instance(seed), id=str(seed)) for seed in (*range(40), 75, 87, 108, 148, 214)),
        # Two racks, or brokers, can hold less together than each alone: some partitions have one replica.
        pytest.param(instance(320), id="racks"),
        *(pytest.param(shaped(seed, small=True), id=f"shaped-{seed}") for seed in (85, 553)),
    ],
)
def test_shares_are_as_near_to_capacity_as_racks_and_partitions_permit(given: Instance) -> None:
    first = InProcess([given.block()]).ask(AtFirst(len(given.brokers), given.goal))
    terms = make_terms(given.brokers, given.goal, first["load"], first["by_factor"])
    fair = fair_shares(Problem.of(given.block(), given.brokers, given.goal), given.brokers)
    np.testing.assert_allclose(terms.share[terms.receives], fair[terms.receives], rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    ("total", "brokers", "tolerance", "low", "high"),
    [
        # Nine tenths of a ninth are 5627, which floats miss by a hair; and so they do with 1.15 times 100.
        (56_270, 9, 0.1, 5_627, 6_877),
        (100, 1, 0.15, 85, 115),
        # A million million bytes: floats are off by more than a millionth of a byte.
        (7_000_000_000_000, 7, 0.05, 950_000_000_000, 1_050_000_000_000),
    ],
)
def test_bounds_that_are_whole_numbers_are_not_missed_by_rounding(
    total: int, brokers: int, tolerance: float, low: int, high: int
) -> None:
    share = shares(float(total), np.ones(brokers), np.full(brokers, -1, np.int32), float(total), np.zeros(0))
    assert [set(b.tolist()) for b in bounds(share, tolerance)] == [{low}, {high}]
    assert [set(b.tolist()) for b in whole_bounds(share, tolerance)] == [{low}, {high}]
