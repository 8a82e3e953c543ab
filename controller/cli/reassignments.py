"""`klamm reassignment execute / list`: Kafka's reassignment JSON in, progress out."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click
import trio
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from controller import moves
from controller.admin_client import AdminClient
from controller.cli.cluster import Cluster, cluster_options, output_option
from controller.cli.output import print_document, print_table
from controller.cli.running import INTERRUPTED, run, until_signal
from transport.errors import ErrorCode
from transport.messages import OngoingReassignment, PartitionError, ReassignablePartition
from transport.metadata import TopicPartition
from transport.store import formats


@click.group()
def reassignment() -> None:
    """Move replicas between brokers."""


@reassignment.command()
@click.option(
    "--reassignment-json-file",
    "file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4,5,6]}]}',
)
@cluster_options
def execute(cluster: Cluster, file: Path) -> None:
    """Begin the moves in a file and wait until they are done. Ctrl-C stops the waiting, not the moves."""
    targets = _read_targets(file)
    sys.exit(run(partial(_execute, cluster, targets)))


def _read_targets(file: Path) -> dict[TopicPartition, tuple[int, ...]]:
    try:
        targets = formats.decode_reassign_partitions(file.read_bytes())
    except formats.UndecodableZnode as fault:
        raise click.ClickException(f"{file}: {fault.fault}") from None
    if not targets:
        raise click.ClickException(f"{file}: the list of partitions is empty")
    return targets


async def _execute(cluster: Cluster, targets: dict[TopicPartition, tuple[int, ...]]) -> int:
    async with cluster.open_admin() as admin:
        wanted = [ReassignablePartition(tp.topic, tp.partition, replicas) for tp, replicas in targets.items()]
        answer = await admin.alter_partition_reassignments(wanted)
        refused = [item for item in answer.partitions if item.error is not ErrorCode.NONE]
        for item in refused:
            click.echo(f"{item.topic}-{item.partition}: refused: {item.message or item.error.name}", err=True)
        begun = _without(targets, refused)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(until_signal, nursery.cancel_scope)
            await wait_for(admin, begun)
            nursery.cancel_scope.cancel()
        return await _report(admin, begun, refused)


def _without(
    targets: dict[TopicPartition, tuple[int, ...]], refused: list[PartitionError]
) -> dict[TopicPartition, tuple[int, ...]]:
    gone = {TopicPartition(item.topic, item.partition) for item in refused}
    return {tp: replicas for tp, replicas in targets.items() if tp not in gone}


async def wait_for(admin: AdminClient, targets: dict[TopicPartition, tuple[int, ...]]) -> None:
    """Show progress on stderr until every move has ended: a bar on a terminal, else a line whenever there is news."""
    console = Console(stderr=True)
    columns = (
        TextColumn("moved"),
        MofNCompleteColumn(),
        BarColumn(20),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(targets))
        told = ""
        async for status in moves.follow(admin, targets):
            news = status.waits_for()
            progress.update(task, completed=len(targets) - len(status.ongoing), description=news)
            if news and news != told and not console.is_terminal:
                click.echo(news, err=True)
            told = news


async def _report(
    admin: AdminClient, targets: dict[TopicPartition, tuple[int, ...]], refused: list[PartitionError]
) -> int:
    """Say for each move what became of it; return the exit code."""
    status = await moves.check(admin, targets)
    for tp in status.complete:
        click.echo(f"{tp}: complete")
    for tp, replicas in status.other:
        click.echo(
            f"{tp}: ended with replicas {list(replicas)}: cancelled, or moved elsewhere by somebody else", err=True
        )
    for move in status.ongoing:
        click.echo(
            f"{move.topic}-{move.partition}: not complete, goes on by itself: see `klamm reassignment list`", err=True
        )
    if status.ongoing:
        return INTERRUPTED
    return 1 if refused or status.other else 0


@reassignment.command(name="list")
@output_option
@cluster_options
def list_(cluster: Cluster, output: str) -> None:
    """List the moves under way."""

    async def work() -> tuple[OngoingReassignment, ...]:
        async with cluster.open_admin() as admin:
            return await admin.list_partition_reassignments()

    ongoing = run(work)
    if output != "table":
        fields = ("topic", "partition", "replicas", "adding_replicas", "removing_replicas", "leader", "isr")
        print_document([{name: getattr(move, name) for name in fields} for move in ongoing], output)
    elif not ongoing:
        click.echo("no reassignment is under way")
    else:
        rows = [
            (f"{m.topic}-{m.partition}", m.replicas, m.adding_replicas, m.removing_replicas, m.isr) for m in ongoing
        ]
        print_table(["partition", "replicas", "adding", "removing", "isr"], rows)
