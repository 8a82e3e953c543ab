"""`klamm rollout list`: the rollouts whose journals are in a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import click

from controller.rollout.states import MoveState
from klamm.cli.connect import output_option
from klamm.cli.output import print_document, print_table
from klamm.cli.rollout.plan_files import JOURNAL, PlanFiles
from klamm.cli.rollout.report import Report
from klamm.cli.rollout.status import JournalView
from klamm.cli.units import duration, moment, size

_COLUMNS: Final = ("rollout", "state", "done", "of", "left", "time left", "started", "carried out by")


@click.command(name="list")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@output_option
def list_(folder: Path, output: str) -> None:
    """List the rollouts of the plans in FOLDER, by default the one you are in."""
    found = [JournalView(files).look() for files in plans_in(folder)]
    print_list(found, output, f"no plan in {folder} has a rollout: `klamm rollout run` begins one")


def plans_in(folder: Path) -> Iterator[PlanFiles]:
    """Yield the plans with a journal: the folder itself, those in it, and single files in it."""
    for place in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        if (place / JOURNAL).exists():
            yield PlanFiles(place)
    for journal in sorted(folder.glob(f"*.{JOURNAL}")):
        plan = journal.with_name(journal.name.removesuffix(f".{JOURNAL}"))
        if plan.exists():
            yield PlanFiles(plan)


def print_list(found: Iterable[Report], output: str, nothing: str) -> None:
    """Print rollouts, one in a row."""
    reports = list(found)
    if output != "table":
        print_document([{"rollout": report.name, **report.document} for report in reports], output)
    elif not reports:
        click.echo(nothing)
    else:
        print_table(_COLUMNS, map(_row, reports))


def _row(report: Report) -> tuple[object, ...]:
    told = {} if report.state.is_over else report.progress
    left, seconds = told.get("bytes_left"), told.get("seconds_left")
    return (
        report.name,
        str(report.state),
        report.counts[MoveState.DONE],
        report.total,
        None if left is None else size(left),
        None if seconds is None else duration(seconds * 1000),
        moment(report.started_ms),
        None if report.state.is_over else report.carried_out_by,
    )
