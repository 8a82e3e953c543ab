from __future__ import annotations

from random import Random

import numpy as np
from attrs import evolve

from spark_bridge.engines.in_process import InProcess
from spark_bridge.kernel.shares import bounds
from spark_bridge.model.block import Block
from spark_bridge.model.brokers import Broker, Brokers
from spark_bridge.model.goal import Goal, GoalKind, LeaderScope
from spark_bridge.planning import plan_cluster
from spark_bridge.progress import Progress

BROKERS = 20


def cluster() -> Block:
    rng = Random(1)
    lists = [rng.sample(range(BROKERS), 3) for _ in range(1_000)]
    none = [0] * len(lists)
    read = [int(rng.expovariate(1e-6)) for _ in lists]
    return Block.of([("t", n) for n in range(len(lists))], lists, none, none, read)


def planned(block: Block, goal: Goal) -> Block:
    def ignore(progress: Progress) -> None:
        del progress

    engine = InProcess([block])
    plan_cluster(engine, Brokers.of([Broker(n) for n in range(BROKERS)]), goal, ignore)
    (block,) = engine.held
    return block


def test_a_rebalance_evens_what_is_read_and_again_changes_nothing() -> None:
    goal = Goal(GoalKind.REBALANCE)
    after = planned(cluster(), goal)
    read = np.bincount(after.after[:, 0], after.bytes_out, BROKERS)
    low, high = bounds(np.full(BROKERS, read.mean()), goal.tolerance)
    assert np.all((low <= read) & (read <= high))
    again = planned(evolve(after, before=after.after), goal)
    assert np.array_equal(again.after, after.after)


def test_leaders_that_are_to_stay_stay_whatever_is_read() -> None:
    block = cluster()
    after = planned(block, Goal(GoalKind.REPAIR_RACKS, leaders=LeaderScope.NONE))
    assert np.array_equal(after.after, block.after)
