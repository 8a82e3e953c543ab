"""The scope of `--leaders touched`: all partitions whose list changes in any way."""

from __future__ import annotations

from spark_bridge.engines.in_process import InProcess
from spark_bridge.model.block import Block
from spark_bridge.model.brokers import Broker, Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind, LeaderScope
from spark_bridge.model.summary import Summary
from spark_bridge.planning import plan_cluster
from spark_bridge.summing import summarize

TWELVE = 12


def planned(lists: list[list[int]], goal: Goal, draining: int | None = None) -> Summary:
    """Plan for brokers 0 to 3 with partitions of 10 bytes."""
    states = [BrokerState.DRAINING if n == draining else BrokerState.LIVE for n in range(4)]
    brokers = Brokers.of(Broker(n, state=state) for n, state in enumerate(states))
    same = [10] * len(lists)
    block = Block.of([("t", n) for n in range(len(lists))], lists, same, same, same)
    return summarize(plan_cluster(InProcess([block]), brokers, goal, lambda _: None), {}, 0)


def led(summary: Summary) -> list[int]:
    return [broker.after.leaders for broker in summary.brokers]


def factor(wanted: int, leaders: LeaderScope | None = None, *topics: str) -> Goal:
    return Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=wanted, leaders=leaders, topics=topics)


def test_lists_that_lose_a_draining_leader_share_the_next_ones() -> None:
    summary = planned([[0, 1, 2]] * TWELVE, factor(2), draining=0)
    assert led(summary) == [0, 6, 6, 0]
    assert summary.moved_replicas == 0


def test_lists_that_only_shrink_may_have_another_leader() -> None:
    summary = planned([[0, 1, 2]] * TWELVE, factor(2))
    assert led(summary) == [4, 4, 4, 0]
    assert led(planned([[0, 1, 2]] * TWELVE, factor(2, LeaderScope.NONE))) == [12, 0, 0, 0]


def test_lists_that_stay_keep_their_leaders() -> None:
    # Where two replicas are there already, nothing is touched.
    assert led(planned([[0, 1]] * TWELVE, factor(2))) == [12, 0, 0, 0]
