"""Racks count what brokers keep that get nothing: excluded ones, and dead ones under goals that leave them alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spark_bridge.kernel.racks import limits_beside, rack_limits
from spark_bridge.model.brokers import Broker, Brokers, BrokerState
from spark_bridge.model.goal import MOST_REPLICAS, Goal, GoalKind
from spark_bridge.rounds import moves
from spark_bridge.rules import violations
from tests.spark.kernel.instances import Instance
from tests.spark.kernel.small import block_of, lists_of
from tests.spark.planned import plan_blocks
from tests.spark.session import SparkSession
from tests.spark.shapes.campaign import looked_at
from tests.spark.shapes.clusters import KEEPERS_FROM, shaped
from tests.spark.shapes.faults import judged
from tests.spark.shapes.plans import EngineOf, blocks_for, in_process, on_spark, planned
from tests.spark.shapes.rules import FORCED_ONLY, Rules, moved
from tests.spark.shapes.worker import compared

LIVE, EXCLUDED, DRAINING, DEAD = BrokerState
LONGEST = 300.0

FORCED = [KEEPERS_FROM + n for n in (57, 65, 67, 79, 102, 113)]
SEEDS = [*FORCED, *(KEEPERS_FROM + n for n in (24, 49, 83))]
"""Clusters in which such brokers leave racks a smaller limit; each kind of goal that moves replicas is there."""

_UNEVEN = {KEEPERS_FROM + 77, KEEPERS_FROM + 329}
"""Small uneven clusters of which planning again in blocks moves one or two partitions (see docs/planning.md)."""

MANY = [seed for seed in range(KEEPERS_FROM, KEEPERS_FROM + 350) if seed not in _UNEVEN]

ONE_RACK_OR_TWO = Brokers.of(
    Broker(n, rack, state=state)
    for n, (rack, state) in enumerate([*[("a", LIVE)] * 5, ("b", LIVE), ("b", EXCLUDED), ("b", DEAD)])
)
"""Rack a has five brokers that receive. Rack b has one, one that is excluded, and one that is dead."""


def in_rack_a(lists: Sequence[Sequence[int]]) -> list[int]:
    return [sum(broker < 5 for broker in row) for row in lists]


@pytest.mark.parametrize(
    ("goal", "before"),
    [
        # Broker 4 is removed from a partition whose fourth replica stays on the excluded broker.
        (Goal(GoalKind.REMOVE_BROKERS, frozenset({4})), [0, 1, 2, 4, 6]),
        (Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=5), [0, 1, 2, 6]),
        (Goal(GoalKind.REPAIR_RACKS, exclude=frozenset({4})), [0, 1, 2, 6, 7]),
        (Goal(GoalKind.REBALANCE, force=True), [0, 1, 2, 6, 7]),
    ],
    ids=lambda value: value.kind if isinstance(value, Goal) else "",
)
def test_three_and_two_replicas_and_not_four_and_one(goal: Goal, before: list[int]) -> None:
    (done,) = plan_blocks([block_of([before], [10], [10])], ONE_RACK_OR_TWO, goal).blocks
    assert in_rack_a(lists_of(done.after)) == [3]
    assert violations(done, ONE_RACK_OR_TWO, goal) == []


def test_what_leaves_a_relieved_broker_leaves_its_rack_beside_a_dead_broker() -> None:
    goal, before = Goal(GoalKind.RELIEVE, frozenset({4}), force=True), [0, 1, 2, 4, 7]
    (done,) = plan_blocks([block_of([before] * 8, [10] * 8, [10] * 8)], ONE_RACK_OR_TWO, goal).blocks
    moved_rows = [row for row in lists_of(done.after) if sorted(row) != before]
    assert moved_rows
    assert {tuple(sorted(row)) for row in moved_rows} == {(0, 1, 2, 5, 7)}


def test_a_rack_that_has_more_keeps_it() -> None:
    goal = Goal(GoalKind.REPAIR_RACKS)
    (done,) = plan_blocks([block_of([[0, 1, 2, 3, 6]], [10], [10])], ONE_RACK_OR_TWO, goal).blocks
    assert lists_of(done.after) == [[0, 1, 2, 3, 6]]


def test_a_list_that_shrinks_loses_replicas_of_the_fuller_rack() -> None:
    goal = Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=2)
    (done,) = plan_blocks([block_of([[0, 1, 6]], [10], [10])], ONE_RACK_OR_TWO, goal).blocks
    assert lists_of(done.after) == [[0, 6]]


def test_full_disks_are_a_reason_for_a_fuller_rack() -> None:
    rows = [Broker(b.id, b.rack, disk=5 if b.id == 5 else None, state=b.state) for b in ONE_RACK_OR_TWO.rows]
    brokers, goal = Brokers.of(rows), Goal(GoalKind.REMOVE_BROKERS, frozenset({4}))
    plan = plan_blocks([block_of([[0, 1, 2, 4, 6]], [10], [10])], brokers, goal)
    assert lists_of(plan.blocks[0].after) == [[0, 1, 2, 3, 6]]
    assert not plan.bounds.terms.rests.any()


@pytest.mark.parametrize("seed", range(100))
def test_the_limit_is_the_smallest_that_suffices(seed: int) -> None:
    given = shaped(KEEPERS_FROM + seed)
    rules = Rules.of(given)
    block, brokers = given.block(), given.brokers
    receives, rests = (np.isin(np.arange(len(brokers)), [*some]) for some in (rules.receivers, rules.keepers))
    rack = brokers.rack if given.goal.racks else np.full(len(brokers), -1, np.int32)
    order = {name: row for row, name in enumerate(given.names)}
    rows = [order[block.topics[topic], int(number)] for topic, number in zip(block.topic, block.partition, strict=True)]
    wanted = [min(rules.wanted(given.names[row][0], given.replicas[row]), MOST_REPLICAS) for row in rows]
    found = limits_beside(block.before, np.array(wanted), rack, receives, rests, rack_limits(rack, receives))
    least = [rules.limit_beside(given.replicas[row], count) for row, count in zip(rows, wanted, strict=True)]
    # Without racks there is no limit to compare.
    assert not given.goal.racks or found.tolist() == least


# --- clusters of many shapes ------------------------------------------------------------------------------------


def is_tighter(given: Instance) -> bool:
    """Return whether such brokers leave the racks of a partition a smaller limit."""
    rules = Rules.of(given)
    rows = zip(given.names, given.replicas, strict=True)
    wanted = [(before, rules.wanted(topic, before)) for (topic, _), before in rows]
    return any(rules.limit_beside(before, count) < rules.limit(count) for before, count in wanted)


# The engines take turns with the seeds. The soak plans many more seeds on both.
@pytest.mark.parametrize(("engine", "seeds"), [("kernel", SEEDS[::2]), ("blocks", SEEDS[1::2])])
def test_plans_count_what_brokers_keep(engine: str, seeds: Sequence[int]) -> None:
    counted = 0
    for seed in seeds:
        given = shaped(seed)
        assert is_tighter(given)
        outcome = judged(given, engine, longest=LONGEST)
        assert [fault for fault in outcome.faults if fault.what != "slow"] == [], seed
        assert outcome.plan is not None
        counted += outcome.plan.beside
    # Evening out does not count them where that would move more.
    assert counted >= len(seeds) - 1


@pytest.mark.parametrize("seed", [pytest.param(SEEDS[-3], marks=pytest.mark.soak), *SEEDS[:-3], *SEEDS[-2:]])
def test_no_plan_costs_more_because_of_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compare_costs(seed, monkeypatch)


def ignore_keepers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let plans fill racks as if such brokers kept nothing."""
    plan: Any = moves._moved  # noqa: SLF001

    def ignoring(*args: object, counts_rests: bool) -> object:
        del counts_rests
        return plan(*args, counts_rests=False)

    monkeypatch.setattr(moves, "_moved", ignoring)


def compare_costs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = shaped(seed)
    counting = planned(given, blocks_for(given, "kernel"), in_process)
    with monkeypatch.context() as patch:
        ignore_keepers(patch)
        without = planned(given, blocks_for(given, "kernel"), in_process)
    assert (counting.refusal is None) == (without.refusal is None)
    if counting.refusal is None:
        costs = moved(given, counting.lists), moved(given, without.lists)
        assert costs[0] == costs[1] if given.kind in FORCED_ONLY else costs[0] <= costs[1]


@pytest.mark.soak
def test_no_plan_of_many_costs_more_because_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in MANY:
        compare_costs(seed, monkeypatch)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["kernel", "blocks"])
def test_many_plans_count_what_brokers_keep(engine: str) -> None:
    lines = looked_at([(seed, engine, LONGEST) for seed in MANY], 2)
    assert [line for line in lines if any(what != "slow" for what, _ in line.faults)] == []


@pytest.mark.soak
def test_spark_counts_what_brokers_keep(spark: SparkSession, tmp_path: Path) -> None:
    engine_of: EngineOf = on_spark(spark, tmp_path / "blocks")
    for seed in SEEDS[:3]:
        given = shaped(seed)
        outcome = compared(given, judged(given, "spark", engine_of, longest=LONGEST))
        assert [fault for fault in outcome.faults if fault.what != "slow"] == [], seed


def test_a_plan_that_does_not_count_them_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ignore_keepers(monkeypatch)
    faults = [fault.what for seed in FORCED for fault in judged(shaped(seed), "kernel", longest=LONGEST).faults]
    assert "racks without what brokers keep" in faults
