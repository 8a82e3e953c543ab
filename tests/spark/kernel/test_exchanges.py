"""Replicas without room in their own blocks: others make way in exchanges between all blocks."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from attrs import evolve

from spark_bridge.errors import PlanError
from spark_bridge.kernel.gathering import Few, Gather
from spark_bridge.model.block import BYTES, NOBODY, Block
from spark_bridge.model.brokers import Broker, Brokers
from spark_bridge.model.goal import Goal, GoalKind, LeaderScope
from tests.spark.kernel.instances import Instance
from tests.spark.kernel.small import load_of, terms_of
from tests.spark.planned import plan_blocks
from tests.spark.session import SparkSession
from tests.spark.shapes.against_optimum import small
from tests.spark.shapes.clusters import shaped
from tests.spark.shapes.plans import blocks_for, in_process, on_spark, planned
from tests.spark.shapes.rules import broken_rules

DRAIN = Goal(GoalKind.REMOVE_BROKERS, frozenset({0}))


def alone(size: list[int]) -> list[Block]:
    """Return partitions on broker 0, each in a block of its own."""
    return [Block.of([("t", n)], [[0]], [s], [0], [0]) for n, s in enumerate(size)]


@pytest.mark.parametrize(
    ("given", "engine"),
    [
        pytest.param(shaped(414), "kernel", marks=pytest.mark.soak),
        (shaped(414), "blocks"),
        pytest.param(shaped(40105), "blocks", marks=pytest.mark.soak),
        pytest.param(shaped(80166), "kernel", marks=pytest.mark.soak),
        pytest.param(shaped(80166), "blocks", marks=pytest.mark.soak),
        pytest.param(shaped(100987), "kernel", marks=pytest.mark.soak),
        pytest.param(shaped(100987), "blocks", marks=pytest.mark.soak),
        (small(253), "kernel"),
        pytest.param(small(253), "blocks", marks=pytest.mark.soak),
    ],
    ids=lambda value: str(value.seed) if isinstance(value, Instance) else value,
)
def test_what_an_exact_solver_finds_room_for_is_not_refused(given: Instance, engine: str) -> None:
    plan = planned(given, blocks_for(given, engine), in_process)
    assert plan.refusal is None
    assert broken_rules(given, plan.lists) == []


@pytest.mark.parametrize("seed", range(10))
def test_disks_are_filled_to_the_last_byte_by_partitions_of_different_blocks(seed: int) -> None:
    rng = Random(seed)
    disks = [[rng.randint(10, 60) for _ in range(3)] for _ in range(3)]
    size = [s for disk in disks for s in disk]
    rng.shuffle(size)
    brokers = Brokers.of([Broker(0), *(Broker(n, disk=sum(disk)) for n, disk in enumerate(disks, 1))])
    load = load_of(plan_blocks(alone(size), brokers, DRAIN).blocks, brokers)
    assert load[:, BYTES].tolist() == [0, *map(sum, disks)]


@pytest.mark.parametrize("engine", ["kernel", pytest.param("blocks", marks=pytest.mark.soak)])
def test_leaders_that_shall_stay_leave_a_crowded_rack_where_nothing_else_makes_room(engine: str) -> None:
    given = shaped(80166)
    given = evolve(given, goal=evolve(given.goal, leaders=LeaderScope.NONE))
    plan = planned(given, blocks_for(given, engine), in_process)
    assert plan.refusal is None
    assert broken_rules(given, plan.lists) == []


def test_what_finds_no_room_in_any_exchange_is_refused() -> None:
    # Three of 50 do not fit on two disks, though their bytes do.
    brokers = Brokers.of([Broker(0), Broker(1, disk=90), Broker(2, disk=90)])
    with pytest.raises(PlanError, match="1 replicas of 50 bytes together find no broker that has room"):
        plan_blocks(alone([50, 50, 50]), brokers, DRAIN)


@pytest.mark.soak
def test_exchanges_are_the_same_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    given = shaped(414)
    blocks = blocks_for(given, "blocks")
    here = planned(given, blocks, in_process)
    there = planned(given, blocks, on_spark(spark, tmp_path / "blocks"))
    assert there.refusal is None
    assert there.lists == here.lists


def test_blocks_give_what_lacks_a_place_and_then_the_heaviest() -> None:
    size = [10, 70, 30, 50, 0]
    block = Block.of([("t", n) for n in range(5)], [[0]] * 5, size, [0] * 5, [0] * 5)
    brokers = Brokers.of(map(Broker, range(3)))
    terms = terms_of([block], brokers, DRAIN)
    dealt = block.with_after(np.array([[NOBODY], [1], [2], [1], [2]], np.int32))
    rows = Gather(terms, evens=False, most=3)(7, dealt)["all_few"]
    few = Few.of(rows[::-1])
    assert few.origin.tolist() == [[7, 0], [7, 1], [7, 3]]
    assert few.block.after.tolist() == [[NOBODY], [1], [1]]
    assert few.block.before.tolist() == [[0]] * 3
