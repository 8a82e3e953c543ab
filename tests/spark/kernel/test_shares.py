"""The planner's shares compared with linear programs that split partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from spark_bridge.engines.in_process import InProcess
from spark_bridge.kernel.rights import resting
from spark_bridge.kernel.shares import Rooms, bounds, proportional, shares, whole_bounds
from spark_bridge.kernel.terms import make_terms
from spark_bridge.model.block import BYTES
from spark_bridge.rounds.drawing_up import AtFirst, DrawnUp
from tests.spark.kernel.exact import Problem
from tests.spark.kernel.fair import fair_shares
from tests.spark.kernel.instances import Instance, instance
from tests.spark.shapes.against_optimum import small
from tests.spark.shapes.clusters import shaped


def arrays(*rows: Sequence[float] | Sequence[Sequence[float]]) -> Iterator[NDArray[np.float64]]:
    return (np.array(row, np.float64) for row in rows)


@pytest.mark.parametrize(
    "given",
    [
        *(pytest.param(instance(seed), id=str(seed)) for seed in (*range(40), 75, 87, 108, 148, 214)),
        # Two racks, or brokers, can hold less together than each alone: some partitions have one replica.
        pytest.param(instance(320), id="racks"),
        *(pytest.param(shaped(seed, small=True), id=f"shaped-{seed}") for seed in (85, 553)),
        # As many replicas as brokers that may hold them: of some partitions each has one, others are shared.
        *(pytest.param(small(seed), id=f"small-{seed}") for seed in (52, 1372)),
        # What rests on excluded brokers leaves fewer replicas to those that could have to hold one.
        pytest.param(small(477), id="small-477"),
        # What drains stays where brokers are relieved.
        pytest.param(small(81), id="small-81"),
        # A rack that is crowded stays so where brokers are relieved, and may hold more than others.
        *(pytest.param(small(seed), id=f"small-{seed}") for seed in (753, 1068, 1110, 1222)),
    ],
)
def test_shares_are_as_near_to_capacity_as_racks_and_partitions_permit(given: Instance) -> None:
    first = InProcess([given.block()]).ask(AtFirst.of(given.brokers, given.goal))
    terms = make_terms(given.brokers, given.goal, first["load"], first)
    fair = fair_shares(Problem.of(given.block(), given.brokers, given.goal), given.brokers)
    np.testing.assert_allclose(terms.share[terms.receives], fair[terms.receives], rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    ("capacity", "beside", "rooms", "expected"),
    [
        # 60 in one replica and 30 on each of three brokers: what all must have comes first, the small one has no less.
        ([4, 4, 1], [0, 0, 0], Rooms(*arrays([60, 90], [60, 30], [[60] * 3, [30] * 3])), [60, 60, 30]),
        # Nobody has to hold anything.
        ([4, 1, 0], [0, 0, 0], Rooms(*arrays([50], [50], [[50] * 3])), [40, 10, 0]),
        # Two of three replicas are the most that the first two brokers, a rack, can hold: the last has one of each.
        ([1, 1, 0.1], [0, 0, 0], Rooms(*arrays([90], [30], [[60, 30]])), [30, 30, 30]),
        # What a broker has beside counts; who has more than its part of all gets nothing.
        ([1, 1, 1], [70, 10, 0], Rooms(*arrays([60], [60], [[60] * 3])), [70, 35, 35]),
        # The first can have no more than one of each; a factor without weight changes nothing.
        ([9, 3, 1, 0], [0, 0, 0, 0], Rooms(*arrays([120, 0], [60, 5], [[60] * 4, [5] * 4])), [60, 45, 15, 0]),
    ],
)
def test_shares_of_what_brokers_can_hold_together(
    capacity: list[float], beside: list[float], rooms: Rooms, expected: list[float]
) -> None:
    racks = [0, 0, 1] if rooms.of_rack.shape[1] == 2 else range(len(capacity))
    found = shares(np.array(capacity, float), np.array(racks, np.intp), np.array(beside, float), rooms)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("seed", [0, 652])
def test_what_is_beside_oversized_replicas_is_shared_out(seed: int) -> None:
    given = small(seed)
    engine = InProcess([given.block()])
    first = engine.ask(AtFirst.of(given.brokers, given.goal))
    drawn_up = DrawnUp(engine, given.brokers, given.goal, first)
    terms, _ = drawn_up.terms(first["load"], drawn_up.plain(first["load"]))
    assert (terms.fixed.load[:, BYTES] > 0).any()
    rests = first["load"][resting(given.brokers, given.goal)].sum(axis=0)
    np.testing.assert_allclose(terms.share.sum(axis=0), first["load"].sum(axis=0) - rests, rtol=1e-3, atol=1e-3)


def test_many_factors_at_once() -> None:
    # Ten brokers, ten factors: nobody can have less than the replicas of the partitions that have ten of them.
    factors, capacity = np.arange(1.0, 11.0), np.array([100.0, *range(1, 10)])
    rooms = Rooms(factors, np.ones(10), np.ones((10, 10)))
    found = shares(capacity, np.arange(10), np.zeros(10), rooms)
    assert found.sum() == pytest.approx(55)
    assert found[0] == pytest.approx(10)
    assert found.min() >= 1 - 1e-9


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
    share = proportional(float(total), np.ones(brokers))
    assert [set(b.tolist()) for b in bounds(share, tolerance)] == [{low}, {high}]
    assert [set(b.tolist()) for b in whole_bounds(share, tolerance)] == [{low}, {high}]
