"""`klamm reassignment cancel`: cancel some or all moves, and restore the original replicas."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click
from attrs import frozen

from controller.admin.move_admin import MoveAdmin
from klamm.cli.connect import Cluster, cluster_options, output_option
from klamm.cli.reassignment import throttling
from klamm.cli.reassignment.cancelling import Cancelling
from klamm.cli.reassignment.files import json_file, read_targets
from klamm.cli.reassignment.looking import Naming, naming_options
from klamm.cli.reassignment.outcomes import MoveOutcome, report
from klamm.cli.running import stoppable
from klamm.interrupts import INTERRUPTED
from transport.metadata import TopicPartition


@frozen
class Options:
    """The moves to cancel, and the options for it."""

    partitions: tuple[TopicPartition, ...]
    naming: Naming
    waits: bool
    output: str


@click.command()
@json_file(required=False)
@naming_options
@click.option("--all", "every", is_flag=True, help="Cancel all moves in progress.")
@click.option("--no-wait", is_flag=True, help="Return as soon as the cancels are certain to happen.")
@output_option
@cluster_options
def cancel(cluster: Cluster, file: Path | None, naming: Naming, output: str, *, every: bool, no_wait: bool) -> None:
    """Cancel moves. Wait until the partitions have their original replicas again."""
    if [file is not None, naming.topic is not None, every].count(True) != 1:
        raise click.UsageError("give either --reassignment-json-file, --topic and --partition, or --all")
    partitions = () if file is None else tuple(read_targets(file))
    sys.exit(cluster.ask_moves(partial(_cancel, options=Options(partitions, naming, not no_wait, output))))


async def _cancel(admin: MoveAdmin, options: Options) -> int:
    partitions = options.partitions or await _in_progress(admin, options.naming)
    if not partitions:
        click.echo(f"no reassignment{options.naming.of_what} is in progress: there is nothing to cancel", err=True)
        report((), options.output)
        return int(options.naming.topic is not None)
    cancelling = Cancelling(admin, partitions)
    await cancelling.begin()
    interrupted = options.waits and await stoppable(cancelling.wait)
    outcomes = await cancelling.outcomes()
    good = (MoveOutcome.CANCELLED,) if options.waits else (MoveOutcome.CANCELLED, MoveOutcome.IN_PROGRESS)
    await throttling.end(admin, partitions)
    report(outcomes, options.output, *good)
    if all(item.outcome in good for item in outcomes):
        return 0
    return INTERRUPTED if interrupted else 1


async def _in_progress(admin: MoveAdmin, naming: Naming) -> tuple[TopicPartition, ...]:
    if naming.one is not None:
        return (naming.one,)
    in_progress = (await admin.describe_reassignments()).values()
    return tuple(move.tp for move in in_progress if naming.has(move))
