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
from klamm.cli.reassignment.files import Targets, json_file, read_targets
from klamm.cli.reassignment.outcomes import MoveOutcome, PartitionOutcome, judge, report
from klamm.cli.reassignment.record_file import RecordFile
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
    outcomes = cluster.ask_moves(partial(_verify, file=file, targets=read_targets(file), lifts=not preserve_throttles))
    report(outcomes, output, *MoveOutcome)
    sys.exit(any(item.outcome is not MoveOutcome.COMPLETE for item in outcomes))


async def _verify(admin: MoveAdmin, file: Path, targets: Targets, *, lifts: bool) -> list[PartitionOutcome]:
    outcomes = judge(await MoveWatch(admin, targets).look())
    if lifts:
        await throttling.end(admin, list(targets), RecordFile(file))
    return outcomes
