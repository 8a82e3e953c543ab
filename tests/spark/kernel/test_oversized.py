"""Replicas that are larger than any broker's share: their places, and no moves in vain because of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from random import Random

import numpy as np
import pytest
from attrs import evolve
from numpy.typing import NDArray

from spark_bridge.engines.in_process import InProcess
from spark_bridge.kernel.tally import loads, moved
from spark_bridge.model.block import BYTES, BYTES_IN, NOBODY, REPLICAS, Block, name_hash
from spark_bridge.model.brokers import Broker, Brokers
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.model.summary import Summary
from spark_bridge.planning import plan_cluster, refuse_worse
from spark_bridge.rules import violations
from spark_bridge.summing import summarize
from tests.spark.kernel.small import block_of, in_racks, lists_of
from tests.spark.planned import plan_blocks
from tests.spark.shapes.against_optimum import small
from tests.spark.shapes.clusters import shaped

RELIEVE = Goal(GoalKind.RELIEVE, frozenset({0}))
BROKERS = 15
MEAN = 5_000


def with_giants(
    giants: Sequence[int], count: int = 480, *, measure: int = BYTES, empty: int = 0, pull: float = 1.0, blocks: int = 1
) -> list[Block]:
    """Return a cluster of three replicas of each partition, and giants of so many bytes that have one, on broker 0."""
    rng = Random(1)
    rows: list[tuple[tuple[str, int], list[int], int, int]] = []
    for n in range(count):
        size = 0 if n >= count - empty else 1 + int(rng.expovariate(1 / MEAN))
        racks = rng.sample(range(3), 3)
        lists = [
            rng.choices(range(r, BROKERS, 3), [pull if b == 0 else 1.0 for b in range(r, BROKERS, 3)]) for r in racks
        ]
        rows.append(((f"t-{n % 9}", n), [b for drawn in lists for b in drawn], size, size // 10))
    for n, size in enumerate(giants):
        rows.append((("giant", n), [0], size if measure == BYTES else MEAN, size // 10))
    parts = [[row for row in rows if name_hash(*row[0]) % blocks == k] for k in range(blocks)]
    return [
        Block.of(
            [r[0] for r in part], [r[1] for r in part], [r[2] for r in part], [r[3] for r in part], [0] * len(part)
        )
        for part in parts
    ]


def racked(capacity: Sequence[float] = (1.0,)) -> Brokers:
    return Brokers.of(Broker(b, f"rack-{b % 3}", capacity[b % len(capacity)]) for b in range(BROKERS))


def planned(blocks: Sequence[Block], goal: Goal, brokers: Brokers | None = None) -> tuple[list[Block], Summary]:
    """Return the plan and its summary; it is not refused."""
    engine, brokers = InProcess(list(blocks)), brokers or racked()
    summary = summarize(plan_cluster(engine, brokers, goal, lambda _: None), {}, 0)
    refuse_worse(summary, goal)
    assert [line for block in engine.held for line in violations(block, brokers, goal)] == []
    return engine.held, summary


def load_of(blocks: Sequence[Block], *, before: bool = False) -> NDArray[np.int64]:
    total: NDArray[np.int64] = np.sum([loads(block, BROKERS, before=before) for block in blocks], axis=0)
    return total


# Each size, tolerance and measure takes part in those that always run; the soak runs all.
KEPT = [
    pytest.param(*size, tolerance, measure, marks=pytest.mark.soak if number % 7 else ())
    for number, (size, tolerance, measure) in enumerate(
        product(
            [(480, 0, 1), (480, 300, 1), (7_000, 0, 1), (7_000, 5_000, 1), (2_000, 0, 3)],
            [0.05, 0.2],
            [BYTES, BYTES_IN],
        )
    )
]


def giants_on(blocks: Sequence[Block]) -> list[int]:
    """Return the brokers of the giants, in order."""
    return [
        int(block.after[row, 0]) for block in blocks for row in np.flatnonzero(block.topic == _giant(block)).tolist()
    ]


def _giant(block: Block) -> int:
    return block.topics.index("giant") if "giant" in block.topics else -1


@pytest.mark.parametrize(("count", "empty", "blocks", "tolerance", "measure"), KEPT)
def test_a_broker_is_not_emptied_for_what_it_has_to_keep(
    count: int, empty: int, blocks: int, tolerance: float, measure: int
) -> None:
    cluster = with_giants([count * 20_000], count, measure=measure, empty=empty, blocks=blocks)
    done, _ = planned(cluster, evolve(RELIEVE, tolerance=tolerance))
    before, after = load_of(cluster, before=True)[0], load_of(done)[0]
    assert after[REPLICAS] >= min(before[REPLICAS], 0.95 * (1 - tolerance) * 3 * count / BROKERS)
    assert giants_on(done) == [0]


def test_what_a_broker_has_too_many_of_leaves_it_beside_a_giant() -> None:
    cluster = with_giants([10_000_000], pull=3.0)
    done, _ = planned(cluster, RELIEVE)
    share = (3 * 480 + 1) / BROKERS
    assert load_of(cluster, before=True)[0, REPLICAS] > 1.5 * share
    assert load_of(done)[0, REPLICAS] == pytest.approx(share, rel=0.06)


def test_of_several_giants_one_stays_and_nothing_else_leaves() -> None:
    cluster = with_giants([10_000_000] * 3)
    done, _ = planned(cluster, RELIEVE)
    on = giants_on(done)
    assert 0 in on
    assert len(set(on)) == 3
    assert sum(int(moved(block).sum()) for block in done) == 2


def test_where_every_broker_has_a_giant_one_of_three_goes_beside_another() -> None:
    lists = [[n] for n in range(5)] + [[0], [0]] + [[n % 5] for n in range(100)]
    block = block_of(lists, [10_000] * 7 + [10] * 100, [1_000] * 7 + [1] * 100)
    (done,) = plan_blocks([block], in_racks("_____"), RELIEVE).blocks
    # With two on each nothing is won by a second move.
    assert sorted(Counter(b for (b,) in lists_of(done.after)[:7]).values()) == [1, 1, 1, 2, 2]


def test_a_giant_moves_to_a_broker_that_is_less_full_with_it() -> None:
    done, _ = planned(with_giants([10_000_000]), Goal(GoalKind.REBALANCE), racked((1.0, 4.0)))
    assert [b % 2 for b in giants_on(done)] == [1]


# Blocks of some hundred partitions come not quite as near: each has but a few replicas to choose from.
@pytest.mark.parametrize(("blocks", "near"), [pytest.param(1, 0.06, marks=pytest.mark.soak), (3, 0.08)])
def test_beside_a_giant_the_others_share_the_rest_evenly(blocks: int, near: float) -> None:
    cluster = with_giants([10_000_000], 2_000, blocks=blocks)
    done, summary = planned(cluster, Goal(GoalKind.REBALANCE))
    after = load_of(done)[:, BYTES]
    assert giants_on(done) == [0]
    # Of all but the giant each rack has a replica; the giant's broker gets little of its rack's.
    of_rack, beside = (after.sum() - 10_000_000) / 3, 0.1 * (10_000_000 - 1.05 * after.sum() / BROKERS) / 2
    share = [of_rack / 5 if b % 3 else (of_rack - beside) / 4 for b in range(1, BROKERS)]
    assert (np.abs(after[1:] / share - 1) < near).all()
    assert all(row.after <= max(row.reachable, near) + 1e-9 for row in summary.evenness)
    assert all(row.reachable < 0.1 for row in summary.evenness)


@pytest.mark.parametrize(
    "goal",
    [
        RELIEVE,
        pytest.param(Goal(GoalKind.REBALANCE), marks=pytest.mark.soak),
        Goal(GoalKind.ADD_BROKERS, frozenset({14})),
    ],
)
@pytest.mark.parametrize("blocks", [1, pytest.param(3, marks=pytest.mark.soak)])
def test_planning_again_changes_nothing(goal: Goal, blocks: int) -> None:
    cluster = with_giants([10_000_000, 7_000_000, 6_000_000, 300_000], pull=2.0, blocks=blocks)
    once, _ = planned(cluster, goal)
    again, _ = planned([evolve(block, before=block.after) for block in once], goal)
    assert [lists_of(block.after) for block in again] == [lists_of(block.after) for block in once]


@pytest.mark.parametrize("seed", [11, 39])
def test_few_replicas_are_no_reason_to_keep_too_much(seed: int) -> None:
    # To have no more bytes than it should, a broker ends with half the replicas that it should have.
    given = small(seed)
    bounds = plan_blocks([given.block()], given.brokers, given.goal).bounds
    assert bounds.terms.violation(bounds.before).any()
    assert not bounds.terms.violation(bounds.after).any()


def test_nothing_comes_to_who_is_relieved() -> None:
    # One of the two has a giant. The other, once relieved, is below the share that it is not to be taken below.
    given = shaped(102, small=True)
    named = given.brokers.indices(given.goal.brokers)
    (done,) = plan_blocks([given.block()], given.brokers, given.goal).blocks
    new = (done.after != NOBODY) & ~(done.after[:, :, None] == done.before[:, None, :]).any(axis=2)
    assert not np.isin(done.after[new], named).any()


def test_the_report_names_who_keeps_what_nobody_has_room_for() -> None:
    _, summary = planned(with_giants([10_000_000]), RELIEVE)
    assert summary.notes[0] == (
        "bytes: broker 0 keeps 10.0 MB in replicas that are larger than any broker's share, "
        "with which no other broker would be less full"
    )
    assert summary.changed == 0
    assert summary.worse == ()


def test_an_added_broker_gets_the_cheapest_that_fills_it() -> None:
    # Broker 2 would be far less full without the 8,000 bytes that it has, but nobody asked for that.
    block = block_of([[0], [0], [0], [1], [2]], [7_700, 6_200, 7_000, 7_500, 8_000])
    brokers = Brokers.of(Broker(b, capacity=1.0 if b == 2 else 4.0) for b in range(7))
    (done,) = plan_blocks([block], brokers, Goal(GoalKind.ADD_BROKERS, frozenset({3}))).blocks
    assert lists_of(done.after) == [[0], [3], [0], [1], [2]]
