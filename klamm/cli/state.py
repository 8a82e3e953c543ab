"""`klamm state dump`: what is in ZooKeeper."""

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
    """Look at what is in ZooKeeper."""


@state.command()
@zookeeper_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "jsonl", "parquet"]),
    default="json",
    show_default=True,
    help="One JSON document; for large clusters a JSON object a line, or a folder of Parquet.",
)
@click.option("-o", "--output", metavar="PATH", help="The file or, for Parquet, the folder; without it, stdout.")
def dump(zookeeper: str, form: str, output: str | None) -> None:
    """Print brokers and partitions as JSON, read from ZooKeeper without being controller.

    Planning reads each of the formats.
    """

    async def work(writer: Writer) -> None:
        async with open_existing(zookeeper, security=security_of_environment()) as store:
            writer.finish(await dump_in_parts(store, writer.partitions))

    # The wait for the reader of a pipe happens here, where Ctrl-C can end it.
    with open_writer(form, output) as writer:
        run(partial(work, writer))
