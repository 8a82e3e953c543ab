"""`klamm reassignment verify`: check whether a file has been carried out."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
from attrs import evolve

from controller.admin.move_admin import MoveAdmin
from controller.admin.moves import MoveWatch
from klamm.cli.connect import Cluster, cluster_options
from klamm.cli.formats import Note, View, output_options
from klamm.cli.reassignment import throttling
from klamm.cli.reassignment.files import NOTHING_TO_DO, MoveFile, json_file, read_document
from klamm.cli.reassignment.log_moves import log_moves
from klamm.cli.reassignment.outcomes import MoveOutcome, OutcomeRow, PartitionOutcome, judge, view
from klamm.cli.reassignment.record_file import find_record
from klamm.cli.reassignment.throttling import preserve_option


@click.command()
@json_file(required=True)
@preserve_option
@output_options(list[OutcomeRow], watch=True)
@cluster_options
def verify(cluster: Cluster, file: Path, *, preserve_throttles: bool) -> View:
    """Report whether the moves in a file are complete. The exit code is 0 only if all are.

    Throttles that `klamm reassignment execute` set for moves that are over are removed.
    """
    document = read_document(file, may_be_empty=True)
    if not document.targets:
        return View([], [Note(NOTHING_TO_DO)], is_over=True)
    outcomes = cluster.ask_moves(partial(_verify, file=file, document=document, lifts=not preserve_throttles))
    found = {item.outcome for item in outcomes}
    shown = view(outcomes, *MoveOutcome, code=int(found != {MoveOutcome.COMPLETE}))
    return evolve(shown, is_over=MoveOutcome.IN_PROGRESS not in found)


async def _verify(admin: MoveAdmin, file: Path, document: MoveFile, *, lifts: bool) -> list[PartitionOutcome]:
    record = await find_record(admin, file)
    logs = log_moves(admin, document.log_dirs)
    outcomes = judge(await MoveWatch(admin, document.targets).look())
    if logs is not None:
        outcomes = logs.judge(outcomes, await logs.look())
    if lifts:
        await throttling.end(admin, list(document.targets), record, document.targets)
    return outcomes
