"""Forced moves dealt again: no broker is fuller than necessary, and disks fill up before anything is refused."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from statistics import fmean

import numpy as np
import pytest
from attrs import define, evolve, field
from numpy.typing import NDArray

from spark_bridge.engines.engine import Accept
from spark_bridge.engines.in_process import InProcess
from spark_bridge.errors import PlanError
from spark_bridge.kernel.redeal import Promising, Redeal
from spark_bridge.kernel.tally import BlockStep, Tally
from spark_bridge.model.block import BYTES, NOBODY, REPLICAS, Block
from spark_bridge.model.brokers import Broker, Brokers, BrokerState
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.rounds.moves import plan_moves
from tests.spark.kernel.exact import Problem, fullest, least_fullest
from tests.spark.kernel.fair import fair_shares
from tests.spark.kernel.instances import Instance, instance
from tests.spark.kernel.small import block_of, load_of
from tests.spark.kernel.verdict import checked
from tests.spark.planned import plan_blocks
from tests.spark.shapes.against_optimum import compared

DRAIN = Goal(GoalKind.REMOVE_BROKERS, frozenset({0}))
NODES = 1_000
"""Of the solver."""


def factor(wanted: int) -> Goal:
    return Goal(GoalKind.SET_REPLICATION_FACTOR, replication_factor=wanted)


def in_blocks(lists: Sequence[Sequence[int]], size: Sequence[int], count: int) -> list[Block]:
    """Return partitions with these lists, every so many of them in one block."""
    parts = [range(n, len(lists), count) for n in range(count)]
    return [_block([("t", n) for n in part], [lists[n] for n in part], [size[n] for n in part]) for part in parts]


def _block(names: list[tuple[str, int]], lists: list[Sequence[int]], size: list[int]) -> Block:
    none = [0] * len(names)
    return Block.of(names, lists, size, none, none)


def asked(seed: int, kind: str) -> Instance:
    """Return a random cluster without an end to its disks, and what is asked of it."""
    given = instance(4 * seed)
    brokers = [evolve(b, disk=None, state=BrokerState.LIVE) for b in given.brokers.rows]
    if kind == "dead":
        brokers[seed % len(brokers)] = evolve(brokers[seed % len(brokers)], state=BrokerState.DEAD)
    most = max(map(len, given.replicas))
    goals = {
        "remove": evolve(given.goal),
        "dead": Goal(GoalKind.REPAIR_RACKS, dead_is_gone=True),
        "raise": factor(min(most + 1, len(brokers))),
        "lower": factor(max(1, most - 1)),
    }
    return evolve(given, kind=kind, brokers=Brokers.of(brokers), goal=goals[kind])


@cache
def solved(kind: str) -> list[tuple[Instance, Problem, NDArray[np.float64], float]]:
    """Return random clusters with their problem, fair shares, and what the fullest broker has at the least."""
    found = []
    for given in (asked(seed, kind) for seed in range(12)):
        try:
            problem = Problem.of(given.block(), given.brokers, given.goal)
        except ValueError:
            continue
        shares = fair_shares(problem, given.brokers)
        least = least_fullest(problem, shares, nodes=NODES)
        assert least is not None
        found.append((given, problem, shares, least.bound))
    return found


def parts_of_best(kind: str, count: int) -> list[float]:
    """Return the fullest brokers of some plans, each as a multiple of what it would be at the least."""
    parts = []
    for given, problem, shares, least in solved(kind):
        blocks = [given.block()] if count == 1 else list(_cut(given.block(), count))
        loads = problem.loads(checked(given, plan_blocks(blocks, given.brokers, given.goal)))
        parts.append(fullest(problem, shares, loads) / least)
    return parts


def _cut(block: Block, count: int) -> Sequence[Block]:
    rows = [range(n, len(block), count) for n in range(count)]
    names = [(block.topics[t], int(p)) for t, p in zip(block.topic, block.partition, strict=True)]
    return [
        Block.of(
            [names[i] for i in some],
            [[b for b in block.before[i].tolist() if b != NOBODY] for i in some],
            block.weights[some, 1].tolist(),
            block.weights[some, 2].tolist(),
            block.bytes_out[some].tolist(),
        )
        for some in map(list, rows)
    ]


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("remove", 1),
        ("dead", 3),
        *(
            pytest.param(*row, marks=pytest.mark.soak)
            for row in [("raise", 3), ("remove", 3), ("dead", 1), ("raise", 1), ("lower", 1), ("lower", 3)]
        ),
    ],
)
def test_the_fullest_broker_is_hardly_fuller_than_it_has_to_be(kind: str, count: int) -> None:
    parts = parts_of_best(kind, count)
    assert len(parts) >= 8
    assert fmean(parts) <= 1.1
    assert max(parts) <= 1.5


@pytest.mark.parametrize("count", [1, 2])
def test_a_lower_factor_takes_preferred_leaders_from_a_broker_that_is_too_full(count: int) -> None:
    # Broker 0 leads all partitions: with these alone it would have everything.
    blocks = in_blocks([[0, 1], [0, 2], [0, 3]] * 4, [100] * 12, count)
    brokers = Brokers.of(map(Broker, range(4)))
    load = load_of(plan_blocks(blocks, brokers, factor(1)).blocks, brokers)
    assert load[:, BYTES].max() <= 400
    assert load[:, BYTES].sum() == 1200


def test_a_lower_factor_leaves_preferred_leaders_where_nobody_is_too_full() -> None:
    lists = [[n % 4, (n + 1) % 4] for n in range(12)]
    block = block_of(lists, [100] * 12)
    (done,) = plan_blocks([block], Brokers.of(map(Broker, range(4))), factor(1)).blocks
    assert done.after[:, 0].tolist() == block.before[:, 0].tolist()


@pytest.mark.parametrize("count", [1, 2])
def test_what_was_dealt_makes_way_for_what_finds_no_room(count: int) -> None:
    # The heaviest first, each to the emptiest, come to 80 and 70: nobody has room for the last.
    size = [50, 40, 30, 30, 30]
    blocks = in_blocks([[0]] * 5, size, count)
    brokers = Brokers.of([Broker(0), Broker(1, disk=90), Broker(2, disk=90)])
    load = load_of(plan_blocks(blocks, brokers, DRAIN).blocks, brokers)
    assert load[:, BYTES].tolist() == [0, 90, 90]


@pytest.mark.parametrize("count", [1, 2])
def test_what_has_no_room_whatever_makes_way_is_refused(count: int) -> None:
    blocks = in_blocks([[0]] * 5, [50, 50, 50, 15, 15], count)
    brokers = Brokers.of([Broker(0), Broker(1, disk=90), Broker(2, disk=90)])
    with pytest.raises(PlanError, match=r"1 replicas of \d+ bytes together find no broker that has room"):
        plan_blocks(blocks, brokers, DRAIN)


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_empty_finds_room_on_full_disks(count: int) -> None:
    # Brokers 1 to 3 have more than their disks hold.
    lists = [[1], [2], [3], *[[0]] * 30]
    blocks = in_blocks(lists, [100] * 3 + [0] * 30, count)
    brokers = Brokers.of([Broker(0), *(Broker(n, disk=90) for n in (1, 2, 3))])
    load = load_of(plan_blocks(blocks, brokers, DRAIN).blocks, brokers)
    assert load[:, REPLICAS].tolist() == [0, 11, 11, 11]


def test_planning_again_what_was_dealt_again_changes_nothing() -> None:
    for kind in ("remove", "dead", "raise", "lower"):
        given = asked(5, kind)
        (once,) = plan_blocks([given.block()], given.brokers, given.goal).blocks
        (again,) = plan_blocks([evolve(once, before=once.after)], given.brokers, given.goal).blocks
        assert np.sort(again.after).tolist() == np.sort(once.after).tolist()


ADD = Goal(GoalKind.ADD_BROKERS, frozenset({3}))


@pytest.mark.parametrize("count", [1, 2])
def test_what_evening_out_would_move_makes_way_for_what_has_to_move(count: int) -> None:
    # Both replicas of broker 0 have to leave, and in its rack only broker 1 is left, full of what 3 may have.
    lists = [[0, 2], [0, 2], *[[1]] * 4]
    blocks = in_blocks(lists, [40] * 2 + [20] * 4, count)
    drained = Broker(0, "a", state=BrokerState.DRAINING)
    brokers = Brokers.of([drained, Broker(1, "a", disk=90), Broker(2, "b"), Broker(3, "b", disk=90)])
    load = load_of(plan_blocks(blocks, brokers, ADD).blocks, brokers)
    assert load[:, BYTES].tolist()[:2] == [0, 80]
    assert load[3, BYTES] == 80


def test_what_only_has_to_move_makes_no_other_replica_move() -> None:
    blocks = in_blocks([[0, 2], [0, 2], *[[1]] * 4], [40] * 2 + [20] * 4, 1)
    brokers = Brokers.of([Broker(0, "a"), Broker(1, "a", disk=90), Broker(2, "b"), Broker(3, "b", disk=90)])
    with pytest.raises(PlanError, match=r"2 replicas of 80 bytes together find no broker that has room"):
        plan_blocks(blocks, brokers, DRAIN)


@pytest.mark.parametrize("seed", [626, 745])
def test_an_excluded_broker_keeps_what_others_are_too_full_of(seed: int) -> None:
    # Lists that shrink may drop a replica of theirs, or that of a broker above its bounds.
    reached = compared(seed).fullest
    assert reached is not None
    assert reached < 1.5


@define(eq=False)
class Recorded(InProcess):
    """Records the rounds of dealing again."""

    rounds: list[int] = field(factory=list)

    def step(self, step: BlockStep, accept: Accept | None = None) -> Tally | None:
        if isinstance(step, Redeal):
            self.rounds.append(step.standing.owners.round)
        return super().step(step, accept)


def recorded(blocks: Sequence[Block], brokers: Brokers, goal: Goal) -> Recorded:
    engine = Recorded(list(blocks))
    plan_moves(engine, brokers, goal)
    return engine


def test_no_round_deals_again_where_no_block_would_change_anything() -> None:
    # Broker 1 is too full of what it had, and gets nothing.
    lists = [[0], *[[1]] * 9, *[[2], [3]] * 3]
    brokers = Brokers.of(Broker(n) for n in range(4))
    assert recorded(in_blocks(lists, [10] * len(lists), 3), brokers, DRAIN).rounds == []


@pytest.mark.parametrize("count", [3, 10])
def test_rounds_that_are_left_out_would_change_nothing(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [asked(seed, kind) for seed in range(4) for kind in ("remove", "raise", "lower")]
    dealt = [in_blocks(given.replicas, given.size, count) for given in drawn]
    some = [recorded(blocks, given.brokers, given.goal) for blocks, given in zip(dealt, drawn, strict=True)]

    def every(self: Promising, number: int, block: Block) -> Tally:
        del number, block
        return {"promising": np.ones(len(self.rounds), np.int64)}

    monkeypatch.setattr(Promising, "__call__", every)
    all_ = [recorded(blocks, given.brokers, given.goal) for blocks, given in zip(dealt, drawn, strict=True)]
    lists = [[[block.after.tolist() for block in engine.held] for engine in engines] for engines in (some, all_)]
    assert lists[0] == lists[1]
    rounds = [sum(len(engine.rounds) for engine in engines) for engines in (some, all_)]
    assert 0 < rounds[0] < rounds[1]
