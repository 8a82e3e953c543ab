"""The inputs of a plan that are read from a running cluster, with the sizes and disks that its brokers tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import click

from controller.monitoring.cluster_dump import dump_cluster
from klamm.cli.planning.options import Options
from klamm.cli.state import JsonLines, tell_gaps
from klamm.cli.visibility import NOTHING_VISIBLE
from spark_bridge.inputs.sources import refusal

_SNAPSHOT: Final = "cluster.jsonl"
_LOADS: Final = "sizes.jsonl"


def require_one_cluster(options: Options) -> None:
    """Raise click.UsageError unless there is just one cluster to plan for, a file or a running one."""
    snapshot, live = options["snapshot"], options["live"]
    if snapshot is None and live is None:
        raise click.UsageError("Missing option '--snapshot', or '--bootstrap-server' to read a running cluster.")
    if snapshot is not None and live is not None:
        raise click.UsageError("--snapshot and --bootstrap-server each give a cluster: use only one of them")


@contextmanager
def live_inputs(options: Options, place: Path) -> Iterator[Options]:
    """Yield options whose cluster is a file: a running cluster is read into a folder.

    The sizes that it tells come before those of `--loads`, which take precedence.

    Raises:
        click.ClickException: It cannot be read, or topics are hidden and the options do not accept that. Errors of the
            block name it as the user did.
    """
    live = options["live"]
    if live is None:
        yield options
        return
    found = live.ask(partial(dump_cluster, shared_disks=live.shared_disks, disks_remedy=live.disks_remedy))
    if found.partial is not None and not options["partial"]:
        raise click.ClickException(refusal(found.partial))
    if found.partial is not None and not found.partitions:
        raise click.ClickException(NOTHING_VISIBLE)
    tell_gaps(found)
    snapshot, loads = place / _SNAPSHOT, place / _LOADS
    with snapshot.open("wb") as file:
        writer = JsonLines(file)
        writer.partitions(found.partitions)
        writer.finish(found.others)
    sizes = list(found.loads())
    with loads.open("wb") as file:
        JsonLines(file).partitions(sizes)
    files = Options(snapshot=str(snapshot), loads=(*([str(loads)] if sizes else []), *options["loads"]))
    try:
        yield options | files
    except click.ClickException as error:
        text = error.message.replace(str(snapshot), live.where)
        raise click.ClickException(text.replace(str(loads), live.where)) from None
