"""Tells what no random run of some seeds reaches, and draws the corpus: `python -m tests.simulation.reach 1..200`."""

from __future__ import annotations

import sys
import textwrap
from itertools import chain

import click

from klamm.cli.simulate import SeedRange
from simulator.random_run import corpus
from tests.simulation.reach import report
from tests.simulation.reach.runs import ROOT, reached
from tests.simulation.reach.selection import Masks, best


@click.command()
@click.argument("seeds", type=SeedRange())
@click.option("--corpus", "count", type=click.IntRange(min=1), help="Write so many of the seeds as the corpus.")
def main(seeds: tuple[int, ...], count: int | None) -> None:
    """Run SEEDS and print what none of them reached; with --corpus, also choose the best of those that pass."""
    union, masks, failed = report.Union(), Masks(), list[str]()
    with click.progressbar(reached(seeds), len(seeds), file=sys.stderr) as found:
        for each in found:
            union.add(each)
            if each.violation is None:
                masks.add(each.seed, chain(each.branches, each.pairs))
            else:
                failed.append(f"seed {each.seed} failed: {each.violation}")
    for line in report.lines(union):
        click.echo(line)
    if count is not None:
        chosen = best(masks.by_seed, count)
        corpus.write(chosen)
        click.echo(f"{len(chosen)} of {len(seeds):,} seeds written to {corpus.PATH.relative_to(ROOT)}")
    for text in failed:
        click.echo(textwrap.fill(text, report.WIDTH, subsequent_indent="  "))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
