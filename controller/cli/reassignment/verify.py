"""`klamm reassignment verify`: whether the cluster is as a file says."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from controller.cli.cluster import Cluster, cluster_options, output_option
from controller.cli.reassignment.files import Targets, json_file, read_targets
from controller.cli.reassignment.outcomes import Outcome, PartitionOutcome, judge, report
from controller.cli.running import run
from controller.moves import MoveWatch


@click.command()
@json_file(required=True)
@output_option
@cluster_options
def verify(cluster: Cluster, file: Path, output: str) -> None:
    """Say for each partition in a file whether its move is complete. The exit code is 0 only if all are."""
    outcomes = run(partial(_verify, cluster, read_targets(file)))
    report(outcomes, output, *Outcome)
    sys.exit(any(item.outcome is not Outcome.COMPLETE for item in outcomes))


async def _verify(cluster: Cluster, targets: Targets) -> list[PartitionOutcome]:
    async with cluster.open_moves() as admin:
        return judge(await MoveWatch(admin, targets).look())
