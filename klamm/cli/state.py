"""`klamm state dump`: export the contents of ZooKeeper."""

from __future__ import annotations

from functools import partial

import click

from controller.monitoring.state_dump import dump_in_parts
from klamm.cli.connect import zookeeper_option
from klamm.cli.running import run
from klamm.cli.state_files import Writer, open_writer
from transport.store.existing import open_existing
from transport.store.security import security_of_environment


@click.group()
def state() -> None:
    """Export the contents of ZooKeeper."""


@state.command()
@zookeeper_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "jsonl", "parquet"]),
    default="json",
    show_default=True,
    help="A single JSON document; for large clusters, one JSON object per line, or a folder of Parquet.",
)
@click.option("-o", "--output", metavar="PATH", help="The file or, for Parquet, the folder; stdout if not given.")
def dump(zookeeper: str, form: str, output: str | None) -> None:
    """Print brokers and partitions as JSON, read directly from ZooKeeper.

    `klamm plan` reads all of the formats.
    """

    async def work(writer: Writer) -> None:
        async with open_existing(zookeeper, security=security_of_environment()) as store:
            writer.finish(await dump_in_parts(store, writer.partitions))

    # Ctrl-C can end the wait for the reader of a pipe here.
    with open_writer(form, output) as writer:
        run(partial(work, writer))
