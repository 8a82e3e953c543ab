"""`klamm reassignment verify`: check whether a file has been carried out."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from controller.admin.move_admin import MoveAdmin
from controller.admin.moves import MoveWatch
from klamm.cli.connect import Cluster, cluster_options, output_option
from klamm.cli.reassignment import throttling
from klamm.cli.reassignment.files import NOTHING_TO_DO, MoveFile, json_file, read_document
from klamm.cli.reassignment.log_moves import log_moves
from klamm.cli.reassignment.outcomes import MoveOutcome, PartitionOutcome, judge, report
from klamm.cli.reassignment.record_file import find_record
from klamm.cli.reassignment.throttling import preserve_option


@click.command()
@json_file(required=True)
@preserve_option
@output_option
@cluster_options
def verify(cluster: Cluster, file: Path, output: str, *, preserve_throttles: bool) -> None:
    """Report whether the moves in a file are complete. The exit code is 0 only if all are.

    Throttles that `klamm reassignment execute` set for moves that are over are removed.
    """
    document = read_document(file, may_be_empty=True)
    if not document.targets:
        click.echo(NOTHING_TO_DO, err=True)
        report((), output)
        return
    outcomes = cluster.ask_moves(partial(_verify, file=file, document=document, lifts=not preserve_throttles))
    report(outcomes, output, *MoveOutcome)
    sys.exit(any(item.outcome is not MoveOutcome.COMPLETE for item in outcomes))


async def _verify(admin: MoveAdmin, file: Path, document: MoveFile, *, lifts: bool) -> list[PartitionOutcome]:
    record = await find_record(admin, file)
    logs = log_moves(admin, document.log_dirs)
    outcomes = judge(await MoveWatch(admin, document.targets).look())
    if logs is not None:
        outcomes = logs.judge(outcomes, await logs.look())
    if lifts:
        await throttling.end(admin, list(document.targets), record, document.targets)
    return outcomes
