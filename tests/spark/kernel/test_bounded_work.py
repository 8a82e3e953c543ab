"""Searches end soon on clusters of every shape: their work is counted and bounded."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from attrs import evolve

from spark_bridge.engines.in_process import InProcess
from spark_bridge.generator.cluster import GeneratedCluster
from spark_bridge.generator.shapes import shape_named
from spark_bridge.kernel.annealing import Annealing
from spark_bridge.kernel.descend import Descend
from spark_bridge.kernel.settle import Settle
from spark_bridge.kernel.tally import Tally, moved
from spark_bridge.kernel.view import Turn
from spark_bridge.model.block import BYTES_IN, Block
from spark_bridge.model.brokers import Broker, Brokers
from spark_bridge.model.goal import Goal, GoalKind
from spark_bridge.planning import plan_cluster
from spark_bridge.rounds import moves as planner
from spark_bridge.summing import summarize
from tests.spark.kernel.small import REBALANCE, block_of, load_of, terms_of
from tests.spark.planned import plan_blocks

ALONE = Turn(0, 1, 1)


def heavy_tailed(count: int, brokers: int, factor: int = 2, seed: int = 1) -> Block:
    """Return partitions of which the n-th largest has the n-th part of the largest's bytes."""
    rng = Random(seed)
    size = [10**9 // rank for rank in range(1, count + 1)]
    rng.shuffle(size)
    pull = [rng.uniform(0.2, 1) for _ in range(brokers)]
    lists = [list(dict.fromkeys(rng.choices(range(brokers), pull, k=9 * factor)))[:factor] for _ in size]
    return block_of(lists, size, [s // 1_000 + rng.randrange(100) for s in size])


def plain(count: int) -> Brokers:
    return Brokers.of(Broker(b) for b in range(count))


def descended(block: Block, brokers: Brokers, most_work: int) -> tuple[Block, Tally, float, float]:
    """Descend; return also by how much all brokers are out of bounds before and after."""
    terms, load = terms_of([block], brokers), load_of([block], brokers)
    done, tally = Descend(terms, load, ALONE, most_work)(0, block)
    return done, tally, float(terms.violation(load).sum()), float(terms.violation(tally["load"]).sum())


def test_heavy_tails_are_descended_with_few_looks() -> None:
    _, tally, before, after = descended(heavy_tailed(1_000, 20), plain(20), 10**9)
    assert after < 0.4 * before
    assert tally["max_work"].tolist() < [2_000_000]
    assert tally["max_cut"].tolist() == [0]


def test_a_descent_ends_where_its_work_does() -> None:
    block, brokers, most = heavy_tailed(1_000, 20), plain(20), 100_000
    done, tally, before, after = descended(block, brokers, most)
    assert tally["max_cut"].tolist() == [1]
    assert tally["max_work"].tolist() < [3 * most]
    assert after < before
    assert np.array_equal(done.after, descended(block, brokers, most)[0].after)


def test_bounds_that_no_plan_reaches_are_not_chased() -> None:
    # Broker 0 holds a giant: all else that it has is hardly a thousandth of what it is above its bounds.
    block = block_of([[b] for b in range(4) for _ in range(50)], [10**9, *[10**4] * 49, *[10**5] * 150])
    done, _, before, after = descended(block, plain(4), 10**9)
    assert not moved(done).any()
    assert after == before > 2


def test_nobody_is_taken_farther_than_a_wall() -> None:
    # Any exchange that evens out bytes takes a broker in bytes in to where nobody is.
    block = block_of([[0], [0], [1], [1]], [60, 60, 10, 10], [30, 20, 25, 25])
    brokers = plain(2)
    terms, load = terms_of([block], brokers), load_of([block], brokers)
    free, _ = Descend(terms, load, ALONE)(0, block)
    assert load_of([free], brokers)[:, BYTES_IN].max() > load[:, BYTES_IN].max()
    walls = evolve(terms.walls, most=np.where(np.arange(3) == BYTES_IN, load.max(axis=0), terms.walls.most))
    done, _ = Descend(evolve(terms, walls=walls), load, ALONE)(0, block)
    assert not moved(done).any()


def test_where_little_is_out_of_bounds_little_moves() -> None:
    cluster = GeneratedCluster(shape_named("uniform"))
    engine = InProcess(list(cluster.blocks()))
    summary = summarize(plan_cluster(engine, cluster.brokers, REBALANCE, lambda _: None), {}, 0)
    assert summary.moved_bytes < 1.15 * summary.lower_bound
    assert all(row.after <= row.reachable + 1e-9 for row in summary.evenness)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the steps of annealing."""
    taken: list[int] = []
    run = Annealing.run

    def counted(self: Annealing, steps: int, temperature: float) -> None:
        taken.append(steps)
        run(self, steps, temperature)

    monkeypatch.setattr(Annealing, "run", counted)
    return taken


def test_a_small_cluster_is_settled_in_a_bounded_number_of_steps(steps: list[int]) -> None:
    # Nobody can be even here: each time that it is planned anew, annealing looks for more.
    block, brokers = heavy_tailed(40, 10, factor=3), plain(10)
    once = plan_blocks([block], brokers, REBALANCE)
    assert 0 < sum(steps) <= 410_000
    (done,) = once.blocks
    (again,) = plan_blocks([evolve(done, before=done.after)], brokers, REBALANCE).blocks
    assert not moved(again).any()


@pytest.mark.parametrize("settled", [False, True])
def test_the_report_says_where_work_ended_the_search(settled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not settled:
        monkeypatch.setattr(planner, "MOST_SETTLED", 0)
    monkeypatch.setattr("spark_bridge.kernel.settle.MOST_WORK", 3_000)
    monkeypatch.setattr("spark_bridge.kernel.settle._MOST_STEPS", 1_000)
    engine, brokers = InProcess([heavy_tailed(400, 12)]), plain(12)
    full = summarize(plan_cluster(InProcess(engine.held), brokers, REBALANCE, lambda _: None), {}, 0)
    monkeypatch.setattr(planner, "MOST_WORK", 3_000)
    cut = summarize(plan_cluster(engine, brokers, REBALANCE, lambda _: None), {}, 0)
    said = "the search reached the limit on the work for a plan: "
    assert cut.notes[0].startswith(said)
    assert "still out of bounds, broker " in cut.notes[0]
    assert settled or not any(note.startswith(said) for note in full.notes)


def test_what_ends_less_even_is_planned_again_with_less(monkeypatch: pytest.MonkeyPatch) -> None:
    # The search takes all replicas of a broker away. Within walls it may not: then it leaves all where it is.
    block, brokers = block_of([[n % 3] for n in range(9)], [5] * 9, [1] * 9), plain(3)

    def spoilt(self: Settle, number: int, block: Block) -> tuple[Block, Tally]:
        del self, number
        done = block.with_after(np.where(block.after == 0, 1, block.after))
        return done, {"load": load_of([done], brokers), "max_cut": np.array([0])}

    monkeypatch.setattr(Settle, "__call__", spoilt)
    for goal, moves in ((REBALANCE, 0), (Goal(GoalKind.REBALANCE, force=True), 3)):
        summary = summarize(plan_cluster(InProcess([block]), brokers, goal, lambda _: None), {}, 0)
        assert summary.moved_replicas == moves
        assert bool(summary.needless) == bool(moves)
