"""What `klamm simulate --seed` and `--seeds` do without a scenario."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import closing
from typing import Final

import click
import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from controller.simulation.random_run import report
from controller.simulation.random_run.campaign import Tally, cores, outcomes
from controller.simulation.random_run.plan import draw
from controller.simulation.random_run.run import run
from controller.simulation.trace import Trace

INTERRUPTED: Final = 130


def run_seeds(first: int, last: int, output: str) -> int:
    """Execute the random runs of the seeds `first` to `last` and print what came of them; return an exit code.

    A single one is shown with its plan, and in JSON with its whole trace.
    """
    return _run_one(first, output) if first == last else _run_many(range(first, last + 1), output)


def _run_one(seed: int, output: str) -> int:
    plan, trace = draw(seed), Trace(keep_all=output == "json")
    outcome = run(plan, trace=trace)
    if output == "json":
        _print_json(report.run_json(plan, outcome, trace))
    else:
        _print(report.run_lines(plan, outcome))
    return int(outcome.violation is not None)


def _run_many(seeds: range, output: str) -> int:
    tally = Tally()
    interrupted = False
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(file=sys.stderr)
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("none failed", total=len(seeds))
        try:
            with closing(outcomes(seeds, processes=min(cores(), len(seeds)))) as found:
                for outcome in found:
                    tally.add(outcome)
                    progress.update(task, advance=1, description=f"{tally.failed or 'none'} failed")
        except KeyboardInterrupt:
            interrupted = True
    if output == "json":
        _print_json(report.tally_json(tally))
    else:
        _print(line for outcome in tally.failures for line in (*report.failure_lines(outcome), ""))
        _print(report.tally_lines(tally))
    if interrupted:
        click.echo(f"interrupted after {tally.runs:,} of {len(seeds):,} runs", err=True)
        return INTERRUPTED
    return int(tally.failed > 0)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _print_json(value: object) -> None:
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
