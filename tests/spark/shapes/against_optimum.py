"""Plans of small clusters of all shapes next to the best there are: `python -m tests.spark.shapes.against_optimum`.

For each goal: the bytes as multiples of the optimum, lower bounds, bounds that could be reached and were not, and, for
goals that only move what must, the bytes of the fullest broker as multiples of the exact minimax.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from random import Random
from statistics import fmean

import click
from attrs import define, evolve, field, frozen

from spark_bridge.model.block import Block
from spark_bridge.model.brokers import Brokers, BrokerState
from spark_bridge.model.goal import FORCED_ONLY, Goal, GoalKind, LeaderScope
from tests.spark.kernel.exact import Problem, fullest, least_fullest
from tests.spark.kernel.fair import fair_shares
from tests.spark.kernel.instances import Instance
from tests.spark.kernel.verdict import Planned, Refusal, Verdict, checked, judge
from tests.spark.planned import plan_blocks
from tests.spark.shapes.clusters import drawn
from tests.spark.shapes.goals import KINDS

SOLVED = tuple(kind for kind in GoalKind if kind is not GoalKind.LEADERS)
"""The kinds that move data."""

_UNEVEN = 0.001
_SOME = 5_000
"""Nodes of the solver: what it cannot prove with these counts as the least it could not rule out."""


@frozen
class Compared:
    """A plan next to the best.

    Attributes:
        seed: Of the instance.
        verdict: Its bytes and evenness, or why there is none; None where the solver has nothing to say.
        fullest: The fullest broker's bytes as a multiple of the minimax; None where that is not what the goal is about.
    """

    seed: int
    verdict: Verdict | Refusal | None
    fullest: float | None = None


@define
class _Remembering:
    """Plans in this process, and keeps the plan."""

    plan: Planned | None = field(default=None)

    def __call__(self, blocks: Sequence[Block], brokers: Brokers, goal: Goal) -> Planned:
        self.plan = plan_blocks(blocks, brokers, goal)
        return self.plan


def small(seed: int) -> Instance:
    """Draw a cluster that the solver can take in: small, and told in numbers without many digits."""
    rng = Random(seed)
    given = drawn(rng, seed, rng.randint(4, 24), rng.randint(4, 8))
    unit, rate = max(1, gcd(*given.size)), max(1, max(given.bytes_in) // 100_000)
    rows = (evolve(b, disk=None if b.disk is None else b.disk // unit) for b in given.brokers.rows)
    return evolve(
        given,
        size=tuple(size // unit for size in given.size),
        bytes_in=tuple(n // rate for n in given.bytes_in),
        brokers=Brokers.of(rows),
    )


def compared(seed: int, nodes: int = _SOME) -> Compared:
    """Plan for a seed's cluster and hold the plan against the best."""
    given, planner = small(seed), _Remembering()
    ill = {b.id for b in given.brokers.rows if b.state is not BrokerState.LIVE}
    # Who cannot receive has no share that the solver could hold it to.
    if given.goal.kind is GoalKind.RELIEVE and given.goal.brokers & ill:
        return Compared(seed, None)
    try:
        verdict = judge(given, planner, nodes=nodes)
    except ValueError:
        return Compared(seed, None)
    # Where leaders stay, lists keep what the solver may drop.
    is_freer = given.goal.leader_scope is LeaderScope.NONE
    if planner.plan is None or given.goal.kind not in FORCED_ONLY or is_freer:
        return Compared(seed, verdict)
    problem = Problem.of(given.block(), given.brokers, given.goal)
    shares = fair_shares(problem, given.brokers)
    best = least_fullest(problem, shares, nodes=nodes)
    reached = fullest(problem, shares, problem.loads(checked(given, planner.plan)))
    return Compared(seed, verdict, reached / best.bound if best is not None and best.bound > 0 else None)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--instances", default=200, show_default=True, help="How many clusters for each goal.")
@click.option("--first", default=0, show_default=True, help="How many to leave out.")
@click.option("--goal", "goals", multiple=True, type=click.Choice([str(k) for k in SOLVED]), help="Repeatable; all.")
def main(instances: int, first: int, goals: Sequence[str]) -> None:
    """Print how plans compare with the best, goal by goal."""
    click.echo(f"{'goal':<24} plans refused  bytes/optimum     bound   uneven  fullest/minimax")
    click.echo(f"{'':<24}                 mean     max     wrong             mean     max")
    for kind in SOLVED:
        if goals and str(kind) not in goals:
            continue
        chosen = range(first * len(KINDS) + KINDS.index(kind), (first + instances) * len(KINDS), len(KINDS))
        click.echo("\n".join(told(str(kind), [compared(seed) for seed in chosen])))


def told(kind: str, all_: Sequence[Compared]) -> Iterator[str]:
    """Yield a row of the table and the seeds that are worth a look."""
    verdicts = [c.verdict for c in all_ if isinstance(c.verdict, Verdict)]
    refused = [c.verdict for c in all_ if isinstance(c.verdict, Refusal)]
    ratios = [v.ratio for v in verdicts if v.proven] or [1.0]
    full = [c.fullest for c in all_ if c.fullest is not None] or [1.0]
    wrong = [v for v in verdicts if v.proven and v.lower_bound > v.optimum]
    uneven = [v for v in verdicts if v.uneven > _UNEVEN]
    yield (
        f"{kind:<24} {len(verdicts):>5} {len(refused):>7} {fmean(ratios):>7.3f} {max(ratios):>7.3f} {len(wrong):>7} "
        f"{len(uneven):>8} {fmean(full):>9.3f} {max(full):>7.3f}"
    )
    yield from (
        f"  seed {v.seed}: {v.moved} moved, {v.optimum} would do" for v in verdicts if v.proven and v.ratio > 1.2
    )
    yield from (f"  seed {v.seed}: WRONG BOUND {v.lower_bound}, {v.optimum} would do" for v in wrong)
    yield from (f"  seed {v.seed}: {v.excess:.3f} outside, {v.least_excess:.3f} is possible" for v in uneven)
    yield from (f"  seed {c.seed}: the fullest {c.fullest:.2f} of the minimax" for c in all_ if (c.fullest or 0) > 1.5)
    yield from (f"  seed {r.seed}: refused WRONGLY: {r.reason}" for r in refused if not r.rightly)


if __name__ == "__main__":
    main()
