"""`klamm rollout list`: the rollouts of the controller, or those whose journals are in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import click

from controller.admin.client import AdminClient
from controller.rollout.states import MoveState
from klamm.cli.connect import Cluster, cluster_options
from klamm.cli.formats import Format, Note, Table, View, output_options
from klamm.cli.rollout.described import complete, report_of
from klamm.cli.rollout.documents import RolloutRow
from klamm.cli.rollout.naming import asked
from klamm.cli.rollout.plan_files import JOURNAL, PlanFiles
from klamm.cli.rollout.report import UNUSABLE, Report
from klamm.cli.rollout.status import JournalView
from klamm.cli.units import duration, moment, rate, size

_NONE: Final = (
    "the controller has no rollouts: `klamm rollout start` hands one over, `list FOLDER` shows those from outside"
)
_COLUMNS: Final = (
    "rollout",
    "state",
    "done",
    "of",
    "left",
    "time left",
    "started",
    "carried out by",
    "in flight",
    "rate",
)
_WIDE: Final = ("in flight", "rate")


@click.command(name="list")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
@output_options(list[RolloutRow], watch=True, knows_format=True)
@cluster_options
def list_(cluster: Cluster, folder: Path | None, output: Format) -> View:
    """List the controller's rollouts, or those of plans in FOLDER."""
    if folder is None:
        question = _of_controller if output.is_document else _in_short
        return _view(cluster.ask_moves(partial(asked, question=question)), _NONE)
    found = [JournalView(files).look() for files in plans_in(folder)]
    return _view(found, f"no plan in {folder} has a rollout: `klamm rollout run` begins one")


async def _of_controller(admin: AdminClient) -> list[Report]:
    return [await complete(admin, told) for told in await admin.describe_rollouts()]


async def _in_short(admin: AdminClient) -> list[Report]:
    """Return the same without the moves that are not as planned."""
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


def _view(reports: Sequence[Report], nothing: str) -> View:
    """Return rollouts, one in a row."""
    rows = [report.document for report in reports]
    if not reports:
        return View(rows, [nothing])
    faults = [Note(f"{report.name}: {report.fault}: {report.remedy}") for report in reports if report.fault]
    return View(rows, [Table(_COLUMNS, list(map(_row, reports)), wide=_WIDE), *faults])


def _row(report: Report) -> tuple[object, ...]:
    if report.fault:
        return (report.name, UNUSABLE, *[None] * (len(_COLUMNS) - 2))
    told = {} if report.state.is_over else report.progress
    left, seconds, speed = (told.get(name) for name in ("bytes_left", "seconds_left", "bytes_per_second"))
    return (
        report.name,
        str(report.state),
        report.counts[MoveState.DONE],
        report.total,
        None if left is None else size(left),
        None if seconds is None else duration(seconds * 1000),
        moment(report.started_ms),
        None if report.state.is_over else report.carried_out_by,
        report.counts[MoveState.IN_FLIGHT] + report.counts[MoveState.GOING_BACK],
        None if speed is None else rate(speed),
    )
