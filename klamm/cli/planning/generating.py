"""`klamm plan generate-cluster`: generated clusters to try plans on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
from attrs import evolve
from msgspec import Struct
from rich.console import Console
from rich.progress import Progress

from klamm.cli.decorators import with_options
from klamm.cli.formats import Format, View, out_option, show
from klamm.cli.progress import is_animated
from spark_bridge.errors import PlanError
from spark_bridge.generator.shapes import SHAPES, ClusterShape, shape_named

_NUMBERS: Final = {
    "brokers": "The number of brokers with replicas.",
    "new-brokers": "The number of additional brokers, which are empty.",
    "racks": "The number of racks; 0 for none.",
    "topics": "The number of topics.",
    "partitions": "The number of partitions of all topics together.",
    "replication-factor": "The number of replicas of each partition.",
    "seed": "The seed of all random choices.",
}


def _numbers(command: click.decorators.FC) -> click.decorators.FC:
    """Add an option for each number of a shape."""
    options = [click.option(f"--{name}", type=int, metavar="N", help=text) for name, text in _NUMBERS.items()]
    return with_options(command, options)


class GeneratedFiles(Struct):
    """A generated cluster: its numbers, and the paths of its files."""

    partitions: int
    topics: int
    brokers: int
    snapshot: str
    loads: str
    brokers_table: str


@click.command("generate-cluster")
@click.option(
    "--shape",
    type=click.Choice([*SHAPES]),
    default="history",
    show_default=True,
    metavar="NAME",
    help=f"The defaults of the numbers: {', '.join(SHAPES)}.",
)
@_numbers
@out_option(GeneratedFiles, "A new folder for the files.", "FOLDER")
def generate_cluster(shape: str, out: str | None, output: Format, **numbers: int | None) -> None:
    """Generate a cluster to try plans on. It consists of FOLDER/snapshot, FOLDER/loads and FOLDER/brokers.csv.

    The shapes uniform, linear and exponential are those of Cruise Control's tests. In `history`, brokers were added one
    after another, and older ones are fuller. In `mostly-empty`, nine of ten topics are empty. The others have the sizes
    of real clusters. The same numbers give the same cluster.
    """
    if out is None:
        raise click.UsageError("Missing option '--out'.")
    try:
        from spark_bridge.generator.files import write_cluster
    except ModuleNotFoundError as error:
        raise click.ClickException(f"generating needs {error.name}: pip install 'klamm[plan]'") from None
    chosen = _chosen(shape, numbers)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        with Progress(console=console, transient=True, disable=not is_animated(console)) as progress:
            task = progress.add_task("partitions", total=chosen.partitions)
            write_cluster(chosen, Path(out), lambda written: progress.advance(task, written))
    except PlanError as error:
        raise click.ClickException(str(error)) from None
    made = GeneratedFiles(
        *(chosen.partitions, chosen.topics, chosen.brokers),
        *(f"{out}/{name}" for name in ("snapshot", "loads", "brokers.csv")),
    )
    if output.is_document:
        show(View(made, ()), output)
        return
    console.print(f"{made.partitions:,} partitions in {made.topics:,} topics on {made.brokers:,} brokers. Try:")
    paths = f"--snapshot {made.snapshot} --loads {made.loads} --brokers-table {made.brokers_table}"
    console.print(f"klamm plan rebalance {paths}")


def _chosen(name: str, numbers: dict[str, Any]) -> ClusterShape:
    """Return the shape with the given numbers. Raises click.UsageError if they do not describe a cluster."""
    try:
        return evolve(shape_named(name), **{key: number for key, number in numbers.items() if number is not None})
    except PlanError as error:
        raise click.UsageError(str(error)) from None
