"""`klamm reassignment list`: the moves under way."""

from __future__ import annotations

import click

from controller.cli.cluster import Cluster, cluster_options, output_option
from controller.cli.output import print_document, print_table
from controller.cli.running import run
from transport.messages import OngoingReassignment


@click.command(name="list")
@output_option
@cluster_options
def list_(cluster: Cluster, output: str) -> None:
    """List the moves under way."""

    async def work() -> tuple[OngoingReassignment, ...]:
        async with cluster.open_moves() as admin:
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
