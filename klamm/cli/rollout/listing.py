"""`klamm rollout list`: the rollouts of the controller, or those whose journals are in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import click

from controller.admin.client import AdminClient
from controller.rollout.states import MoveState
from klamm.cli.connect import Cluster, cluster_options, output_option
from klamm.cli.output import print_document, print_table
from klamm.cli.rollout.described import report_of
from klamm.cli.rollout.naming import asked
from klamm.cli.rollout.plan_files import JOURNAL, PlanFiles
from klamm.cli.rollout.report import UNUSABLE, Report
from klamm.cli.rollout.status import JournalView
from klamm.cli.units import duration, moment, size

_NONE: Final = (
    "the controller has no rollouts: `klamm rollout start` hands one over, `list FOLDER` shows those from outside"
)
_COLUMNS: Final = ("rollout", "state", "done", "of", "left", "time left", "started", "carried out by")


@click.command(name="list")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
@output_option
@cluster_options
def list_(cluster: Cluster, folder: Path | None, output: str) -> None:
    """List the controller's rollouts, or those of plans in FOLDER."""
    if folder is None:
        _print(cluster.ask_moves(partial(asked, question=_of_controller)), output, _NONE)
        return
    found = [JournalView(files).look() for files in plans_in(folder)]
    _print(found, output, f"no plan in {folder} has a rollout: `klamm rollout run` begins one")


async def _of_controller(admin: AdminClient) -> list[Report]:
    return [report_of(told) for told in await admin.describe_rollouts()]


def plans_in(folder: Path) -> Iterator[PlanFiles]:
    """Yield the plans with a journal: the folder itself, those in it, and single files in it."""
    for place in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        if (place / JOURNAL).exists():
            yield PlanFiles(place)
    for journal in sorted(folder.glob(f"*.{JOURNAL}")):
        plan = journal.with_name(journal.name.removesuffix(f".{JOURNAL}"))
        if plan.exists():
            yield PlanFiles(plan)


def _print(reports: Sequence[Report], output: str, nothing: str) -> None:
    """Print rollouts, one in a row."""
    if output != "table":
        print_document([{"rollout": report.name, **report.document} for report in reports], output)
    elif not reports:
        click.echo(nothing)
    else:
        print_table(_COLUMNS, map(_row, reports))
        for report in reports:
            if report.fault:
                click.echo(f"{report.name}: {report.fault}: {report.remedy}", err=True)


def _row(report: Report) -> tuple[object, ...]:
    if report.fault:
        return (report.name, UNUSABLE, *[None] * (len(_COLUMNS) - 2))
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
