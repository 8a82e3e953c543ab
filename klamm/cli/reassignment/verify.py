"""`klamm reassignment verify`: check whether a file has been carried out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from attrs import evolve

from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.move_admin import MoveAdmin
from controller.admin.move_throttles import alter
from controller.admin.moves import MoveWatch
from klamm.cli.connect import Cluster, announcing_cluster_options
from klamm.cli.formats import DRY_RUN, Note, View, output_options
from klamm.cli.reassignment import throttling
from klamm.cli.reassignment.files import NOTHING_TO_DO, MoveFile, json_file, read_document
from klamm.cli.reassignment.log_moves import log_moves
from klamm.cli.reassignment.outcomes import MoveOutcome, OutcomeRow, PartitionOutcome, judge, view
from klamm.cli.reassignment.record_file import find_record
from klamm.cli.reassignment.throttling import preserve_option
from klamm.cli.running import is_given
from transport.messages import AlterConfigsResource


@click.command()
@json_file(required=True)
@preserve_option
@click.option("--dry-run", is_flag=True, help="Only say which throttles would be lifted; nothing changes.")
@output_options(list[OutcomeRow], watch=True)
@announcing_cluster_options
def verify(cluster: Cluster, file: Path, *, preserve_throttles: bool, dry_run: bool) -> View:
    """Report whether the moves in a file are complete. The exit code is 0 only if all are.

    Throttles that `klamm reassignment execute` set for moves that are over are removed.
    """
    if dry_run and is_given("watch"):
        raise click.UsageError("--watch lifts throttles once moves are over, and --dry-run looks once: use only one")
    document = read_document(file, may_be_empty=True)
    if not document.targets:
        return View([], [Note(NOTHING_TO_DO)], is_over=True)
    work = partial(_verify, cluster=cluster, file=file, document=document, lifts=not preserve_throttles)
    outcomes = cluster.ask_moves(partial(work, dry_run=dry_run))
    found = {item.outcome for item in outcomes}
    shown = view(outcomes, *MoveOutcome, code=int(found != {MoveOutcome.COMPLETE}))
    parts = [*shown.parts, DRY_RUN] if dry_run else shown.parts
    return evolve(shown, parts=parts, is_over=MoveOutcome.IN_PROGRESS not in found)


async def _verify(
    admin: MoveAdmin, cluster: Cluster, file: Path, document: MoveFile, *, lifts: bool, dry_run: bool
) -> list[PartitionOutcome]:
    async def announced(admin: ClusterAdmin, changes: Sequence[AlterConfigsResource]) -> None:
        await cluster.announce_to(admin)
        await alter(admin, changes)

    record = await find_record(admin, file)
    logs = log_moves(admin, document.log_dirs)
    outcomes = judge(await MoveWatch(admin, document.targets).look())
    if logs is not None:
        outcomes = logs.judge(outcomes, await logs.look())
    if lifts and dry_run:
        would_lift = await throttling.check_end(admin, list(document.targets), record, document.targets)
        if would_lift is not None:
            click.echo(would_lift, err=True)
    elif lifts:
        await throttling.end(admin, list(document.targets), record, document.targets, announced)
    return outcomes
