"""`klamm simulate --seed` and `--seeds` without a scenario: random runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from itertools import islice

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from klamm.cli.shrinking import shrink_failures
from klamm.interrupts import INTERRUPTED
from simulator.random_run import report
from simulator.random_run.campaign import CampaignTally, cores, outcomes
from simulator.random_run.plan import RunPlan, draw
from simulator.random_run.run import RunOutcome, run
from simulator.trace import Trace

PrintValue = Callable[[object], None]
"""Prints a value that has a JSON form."""

PlanOf = Callable[[int], RunPlan]
"""Draws the plan of a seed."""


def run_seeds(
    seeds: Sequence[int],
    print_value: PrintValue | None,
    *,
    shrinks: bool = False,
    kafkas: bool = False,
    always: tuple[str, ...] = (),
    headers: bool = True,
) -> int:
    """Execute the random runs of some seeds and print the results; return an exit code.

    A single run is printed with its plan; as a JSON or YAML value, also with its whole trace. If `shrinks`, failures
    are then made smaller. With `kafkas`, the brokers are Apache Kafka's. All runs have the features named in `always`.
    """
    failures: list[RunOutcome] = []
    run_them = partial(_run_many, headers=headers) if len(seeds) > 1 else _run_one
    code = run_them(seeds, print_value, failures, partial(draw, kafkas=kafkas, always=always))
    return INTERRUPTED if shrinks and not shrink_failures(failures) else code


def _run_one(seeds: Sequence[int], print_value: PrintValue | None, failures: list[RunOutcome], plan_of: PlanOf) -> int:
    [seed] = seeds
    plan, trace = plan_of(seed), Trace(keep_all=print_value is not None)
    outcome = run(plan, trace=trace)
    if print_value is not None:
        print_value(report.run_json(plan, outcome, trace))
    else:
        _print(report.run_lines(plan, outcome))
    failures += [outcome] if outcome.violation is not None else []
    return int(outcome.violation is not None)


def _run_many(
    seeds: Sequence[int],
    print_value: PrintValue | None,
    failures: list[RunOutcome],
    plan_of: PlanOf,
    *,
    headers: bool,
) -> int:
    tally = CampaignTally()
    processes = min(cores(), len(seeds))
    has_ended = _add_up(seeds, processes, tally, plan_of)
    if print_value is not None:
        print_value(report.tally_json(tally))
    else:
        _print(line for outcome in tally.failures for line in (*report.failure_lines(outcome), ""))
        _print(report.tally_lines(tally, headers=headers))
    if not has_ended:
        # Runs begin in order, so a run that never ends is among these.
        begun = [str(seed) for seed in islice(seeds, tally.runs + processes) if seed not in tally.seeds]
        click.echo(f"interrupted after {tally.runs:,} of {len(seeds):,} runs, during {', '.join(begun)}", err=True)
        return INTERRUPTED
    failures += tally.failures
    return int(tally.failed > 0)


def _add_up(seeds: Sequence[int], processes: int, tally: CampaignTally, plan_of: PlanOf) -> bool:
    """Execute the runs, with a bar on a terminal, and count the results; return whether they ended before Ctrl-C."""
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(file=sys.stderr)
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("none failed", total=len(seeds))
        try:
            with closing(outcomes(map(plan_of, seeds), processes=processes)) as found:
                for outcome in found:
                    tally.add(outcome)
                    progress.update(task, advance=1, description=f"{tally.failed or 'none'} failed")
        except KeyboardInterrupt:
            return False
    return True


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)
