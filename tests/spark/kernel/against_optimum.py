"""Plans of small random clusters next to the best there are: `python -m tests.spark.kernel.against_optimum`."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median, quantiles

import click

from tests.spark.kernel.instances import KINDS, instance
from tests.spark.kernel.verdict import Refusal, Verdict, judge
from tests.spark.planned import plan_blocks

HEADER = (
    "             plans  optimal   bytes / optimum                bound / optimum  uneven   excess   least",
    "                             mean  median     p90     max      mean     max  beyond    mean    mean  unproven",
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--instances", default=300, show_default=True, help="How many clusters, a seed each.")
@click.option("--first", default=0, show_default=True, help="From which seed on.")
@click.option("--worst", default=5, show_default=True, help="How many of the worst to name.")
def main(instances: int, first: int, worst: int) -> None:
    """Print how bytes, evenness and lower bounds of plans compare with the best."""
    judged = [judge(instance(seed), plan_blocks) for seed in range(first, first + instances)]
    verdicts = [v for v in judged if isinstance(v, Verdict)]
    click.echo("\n".join(HEADER))
    for kind in KINDS:
        if some := [v for v in verdicts if v.kind == kind]:
            click.echo(row(kind, some))
    click.echo("\nmost bytes:")
    for v in sorted(verdicts, key=lambda v: -v.ratio)[:worst]:
        click.echo(f"  seed {v.seed}, {v.kind}: {v.moved} bytes, {v.optimum} would do ({v.ratio:.3f})")
    click.echo("most uneven:")
    for v in sorted(verdicts, key=lambda v: -v.uneven)[:worst]:
        click.echo(f"  seed {v.seed}, {v.kind}: {v.excess:.3f} of a share outside, {v.least_excess:.3f} is possible")
    for v in verdicts:
        if v.lower_bound > v.optimum:
            click.echo(f"WRONG BOUND: seed {v.seed}, {v.kind}: {v.lower_bound}, and {v.optimum} is possible")
    for r in judged:
        if isinstance(r, Refusal):
            click.echo(f"refused {'rightly' if r.rightly else 'WRONGLY'}: seed {r.seed}, {r.kind}: {r.reason}")


def row(kind: str, verdicts: Sequence[Verdict]) -> str:
    """Return a line of the table."""
    ratios = [v.ratio for v in verdicts]
    tightness = [v.lower_bound / v.optimum for v in verdicts if v.optimum] or [1.0]
    ninth = quantiles(ratios, n=10)[-1] if len(ratios) > 1 else ratios[0]
    return (
        f"{kind:<12} {len(verdicts):>5} {sum(r <= 1 for r in ratios) / len(ratios):>8.0%} "
        f"{fmean(ratios):>7.3f} {median(ratios):>7.3f} {ninth:>7.3f} {max(ratios):>7.3f}   "
        f"{fmean(tightness):>7.3f} {max(tightness):>7.3f} {sum(v.uneven > 0.001 for v in verdicts):>7} "
        f"{fmean(v.excess for v in verdicts):>7.3f} {fmean(v.least_excess for v in verdicts):>7.3f} "
        f"{sum(not v.proven for v in verdicts):>9}"
    )


if __name__ == "__main__":
    main()
