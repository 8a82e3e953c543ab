"""Plans of small clusters next to the best ones: `python -m tests.spark.shapes.against_optimum`.

For each goal: the bytes and the lower bound as multiples of the optimum, bounds that could be reached and were not,
and, for goals that only move what must, the bytes of the fullest broker as multiples of the exact minimax. `--simple`
takes the clusters of `tests.spark.kernel.instances`; the others are of all shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from random import Random
from statistics import fmean, median, quantiles

import click
from attrs import define, evolve, field, frozen

from spark_bridge.model.block import Block
from spark_bridge.model.brokers import Brokers, BrokerState
from spark_bridge.model.goal import FORCED_ONLY, Goal, GoalKind, LeaderScope
from tests.spark.kernel.exact import Problem, fullest, least_fullest
from tests.spark.kernel.fair import fair_shares
from tests.spark.kernel.instances import KINDS as SIMPLE, Instance, instance
from tests.spark.kernel.verdict import PlannerResult, Refusal, Verdict, checked, judge
from tests.spark.planned import plan_blocks
from tests.spark.shapes.clusters import drawn
from tests.spark.shapes.goals import KINDS

SOLVED = tuple(kind for kind in GoalKind if kind is not GoalKind.LEADERS)
"""The kinds that move data."""

_UNEVEN, _DEAR, _FULL = 0.001, 1.2, 1.5
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

    plan: PlannerResult | None = field(default=None)

    def __call__(self, blocks: Sequence[Block], brokers: Brokers, goal: Goal) -> PlannerResult:
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


def simple(seed: int) -> Compared:
    """Plan for a seed's simple cluster and hold the plan against the best."""
    return Compared(seed, judge(instance(seed), plan_blocks))


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--instances", default=200, show_default=True, help="How many clusters for each goal.")
@click.option("--first", default=0, show_default=True, help="How many to leave out.")
@click.option("--goal", "goals", multiple=True, type=click.Choice([str(k) for k in SOLVED]), help="Repeatable; all.")
@click.option("--simple", "are_simple", is_flag=True, help="Clusters of one kind, planned for four goals.")
@click.option("--worst", default=5, show_default=True, help="How many of the worst to name, of each sort.")
def main(instances: int, first: int, goals: Sequence[str], are_simple: bool, worst: int) -> None:
    """Print how plans compare with the best, goal by goal."""
    click.echo(HEADER)
    kinds: Sequence[str] = SIMPLE if are_simple else KINDS
    judged = simple if are_simple else compared
    for kind in SIMPLE if are_simple else SOLVED:
        if goals and kind not in goals:
            continue
        number = kinds.index(kind)
        seeds = range(first * len(kinds) + number, (first + instances) * len(kinds), len(kinds))
        click.echo("\n".join(told(kind, [judged(seed) for seed in seeds], worst)))


HEADER = f"""\
{"":<24}                      bytes / optimum                  bound / optimum           fullest / minimax
{"goal":<24} plans refused  optimal    mean  median     p90     max    mean     max  uneven    mean     max  unproven"""


def told(kind: str, all_: Sequence[Compared], worst: int) -> Iterator[str]:
    """Yield a row of the table and the seeds that are worth a look."""
    verdicts = [c.verdict for c in all_ if isinstance(c.verdict, Verdict)]
    refused = [c.verdict for c in all_ if isinstance(c.verdict, Refusal)]
    proven = [v for v in verdicts if v.proven]
    ratios = [v.ratio for v in proven] or [1.0]
    ninth = quantiles(ratios, n=10)[-1] if len(ratios) > 1 else ratios[0]
    tightness = [v.lower_bound / v.optimum for v in proven if v.optimum] or [1.0]
    full = [c.fullest for c in all_ if c.fullest is not None] or [1.0]
    uneven = [v for v in verdicts if v.uneven > _UNEVEN]
    yield (
        f"{kind:<24} {len(verdicts):>5} {len(refused):>7} {sum(r <= 1 for r in ratios) / len(ratios):>8.0%} "
        f"{fmean(ratios):>7.3f} {median(ratios):>7.3f} {ninth:>7.3f} {max(ratios):>7.3f} "
        f"{fmean(tightness):>7.3f} {max(tightness):>7.3f} {len(uneven):>7} "
        f"{fmean(full):>7.3f} {max(full):>7.3f} {len(verdicts) - len(proven):>9}"
    )
    for v in sorted((v for v in proven if v.ratio > _DEAR), key=lambda v: -v.ratio)[:worst]:
        yield f"  seed {v.seed}: {v.moved} moved, {v.optimum} would do ({v.ratio:.3f})"
    for v in sorted(uneven, key=lambda v: -v.uneven)[:worst]:
        yield f"  seed {v.seed}: {v.excess:.3f} of a share outside, {v.least_excess:.3f} is possible"
    for c in sorted(all_, key=lambda c: -(c.fullest or 0))[:worst]:
        if c.fullest is not None and c.fullest > _FULL:
            yield f"  seed {c.seed}: the fullest {c.fullest:.2f} of the minimax"
    for v in proven:
        if v.lower_bound > v.optimum:
            yield f"  seed {v.seed}: WRONG BOUND {v.lower_bound}, {v.optimum} would do"
    yield from (f"  seed {r.seed}: refused WRONGLY: {r.reason}" for r in refused if not r.rightly)


if __name__ == "__main__":
    main()
