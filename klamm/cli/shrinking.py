"""`klamm simulate --shrink`: failing seeds of random runs, made smaller and written as scenarios."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from klamm.cli.output_files import write_output
from simulator.random_run.campaign import cores
from simulator.random_run.plan import RunPlan, draw
from simulator.random_run.run import RunOutcome
from simulator.random_run.workers import DIED
from simulator.safety.invariants import Violation
from simulator.shrinking.child_processes import ChildProcesses
from simulator.shrinking.scenario_file import free_path, smallest
from simulator.shrinking.shrink import shrink
from simulator.shrinking.trials import Trials, kind_of


def shrink_failures(failures: Iterable[RunOutcome]) -> bool:
    """Shrink the first failure of each kind, print and write it; return whether Ctrl-C did not stop this."""
    known: set[str] = set()
    for outcome in failures:
        violation = outcome.violation
        if violation is None or kind_of(violation) in known:
            continue
        known.add(kind_of(violation))
        if violation.invariant == DIED:
            click.echo(f"seed {outcome.seed}: its process died, so there is nothing to shrink it with")
        elif not _shrink(outcome, violation):
            return False
    return True


def _shrink(outcome: RunOutcome, violation: Violation) -> bool:
    plan = draw(outcome.seed, kafkas=outcome.is_kafkas, always=outcome.always)
    has_ended = True
    with ChildProcesses(cores()) as children, _progress() as show:
        trials = Trials(plan, kind_of(violation), children.judge, on_run=show)
        try:
            shrink(trials)
        except KeyboardInterrupt:
            has_ended = False
            click.echo("interrupted: this is the smallest so far", err=True)
    _print(trials, plan, outcome)
    return has_ended


def _print(trials: Trials, before: RunPlan, outcome: RunOutcome) -> None:
    seed = trials.best.seed
    path = free_path(seed)
    shrunk = smallest(trials, before, path)
    if shrunk is None:
        click.echo(f"seed {seed}: no scenario fails as it does; replay it with: klamm simulate{outcome.options}")
        return
    click.echo(f"seed {seed}: {shrunk.summary} in {trials.spent:.0f} s, {trials.runs:,} runs")
    for line in shrunk.lines():
        click.echo(line)
    _write(path, shrunk.text)


def _write(path: Path, text: str) -> None:
    write_output(path, [text.encode()])
    click.echo(f"run it again with: klamm simulate {path}")


@contextmanager
def _progress() -> Iterator[Callable[[Trials], None]]:
    """Show on a terminal what is left of a seed."""
    console = Console(file=sys.stderr)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("shrinking", total=None)

        def show(trials: Trials) -> None:
            left = len(trials.best.happenings)
            progress.update(task, description=f"seed {trials.best.seed}: {left} events left, {trials.runs:,} runs")

        yield show
