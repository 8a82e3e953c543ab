"""`klamm reassignment execute`: Kafka's reassignment JSON in, progress out."""

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
from controller.cli.cluster import Cluster, cluster_options
from controller.cli.reassignment.files import json_file_option, read_targets
from controller.cli.running import INTERRUPTED, run, until_signal
from transport.errors import ErrorCode
from transport.messages import PartitionError, ReassignablePartition
from transport.metadata import TopicPartition


@click.command()
@json_file_option
@cluster_options
def execute(cluster: Cluster, file: Path) -> None:
    """Begin the moves in a file and wait until they are done. Ctrl-C stops the waiting, not the moves."""
    targets = read_targets(file)
    sys.exit(run(partial(_execute, cluster, targets)))


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
