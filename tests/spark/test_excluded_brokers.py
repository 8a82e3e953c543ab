"""Excluded brokers keep their leaderships while others are evened out, so planning again changes nothing."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from attrs import evolve
from numpy.typing import NDArray

from spark_bridge.engines.in_process import InProcess
from spark_bridge.model.block import Block
from spark_bridge.model.brokers import Broker, Brokers
from spark_bridge.model.goal import Goal, GoalKind, LeaderScope
from spark_bridge.planning import plan_cluster
from tests.spark.shapes.clusters import shaped

BROKERS = Brokers.of(Broker(n) for n in range(5))
EXCLUDED = 4


def cluster(seed: int) -> list[Block]:
    """Return two blocks of partitions in which the excluded broker leads more than its share."""
    rng = Random(seed)
    blocks = []
    for names in (range(30), range(30, 60)):
        lists = [sorted(rng.sample(range(5), 3), key=lambda b: b != EXCLUDED or rng.random() < 0.5) for _ in names]
        read = [int(rng.expovariate(0.001)) for _ in names]
        zero = [0] * len(names)
        blocks.append(Block.of([("t", n) for n in names], lists, zero, zero, read))
    return blocks


def planned(blocks: list[Block], goal: Goal) -> list[Block]:
    engine = InProcess(blocks)
    plan_cluster(engine, BROKERS, goal, lambda _: None)
    return engine.held


def led(lists: NDArray[np.int32]) -> list[bool]:
    return [leader == EXCLUDED for leader in lists[:, 0].tolist()]


@pytest.mark.parametrize("seed", range(5))
def test_excluded_brokers_keep_what_they_lead_and_again_nothing_changes(seed: int) -> None:
    goal = Goal(GoalKind.REPAIR_RACKS, leaders=LeaderScope.ALL, exclude=frozenset({EXCLUDED}))
    done = planned(cluster(seed), goal)
    assert any(not np.array_equal(block.before, block.after) for block in done)
    assert [led(block.after) for block in done] == [led(block.before) for block in done]
    again = planned([evolve(block, before=block.after) for block in done], goal)
    for block, repeated in zip(done, again, strict=True):
        assert np.array_equal(block.after, repeated.after)


@pytest.mark.parametrize("seed", [60396, 60655])
def test_what_racks_took_from_an_excluded_broker_does_not_come_back(seed: int) -> None:
    # What it keeps decides what the others share, so a replica that came back would have them planned differently.
    given = shaped(seed)
    done, again = InProcess([given.block()]), InProcess([])
    plan_cluster(done, given.brokers, given.goal, lambda _: None)
    again.held = [evolve(block, before=block.after) for block in done.held]
    plan_cluster(again, given.brokers, given.goal, lambda _: None)
    for block, repeated in zip(done.held, again.held, strict=True):
        assert np.array_equal(np.sort(block.after, axis=1), np.sort(repeated.after, axis=1))
