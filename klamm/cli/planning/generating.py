"""`klamm plan generate-cluster`: clusters to try plans on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
from attrs import evolve
from rich.console import Console
from rich.progress import Progress

from klamm.cli.progress import is_animated
from spark_bridge.errors import PlanError
from spark_bridge.generator.shapes import SHAPES, Shape, shape_named

_NUMBERS: Final = {
    "brokers": "How many brokers have replicas.",
    "new-brokers": "How many more brokers there are that have nothing yet.",
    "racks": "Into how many racks brokers are dealt; 0 for none.",
    "topics": "How many topics there are.",
    "partitions": "How many partitions all topics have together.",
    "replication-factor": "How many replicas a partition has.",
    "seed": "What everything is drawn from.",
}


def _numbers(command: click.decorators.FC) -> click.decorators.FC:
    """Give the command an option for each number of a shape."""
    for name, text in reversed(_NUMBERS.items()):
        command = click.option(f"--{name}", type=int, metavar="N", help=text)(command)
    return command


@click.command("generate-cluster")
@click.option(
    "--shape", type=click.Choice([*SHAPES]), default="history", show_default=True, help="Where the numbers begin."
)
@_numbers
@click.option("-o", "--output", required=True, metavar="FOLDER", help="A new folder for the files.")
def generate_cluster(shape: str, output: str, **numbers: int | None) -> None:
    """Write a made-up cluster to try plans on: FOLDER/snapshot, FOLDER/loads and FOLDER/brokers.csv.

    The shapes uniform, linear and exponential are those of Cruise Control's tests; in `history` brokers came one after
    the other, and older ones are fuller; nine of ten topics of `mostly-empty` hold nothing. The others have the size of
    real clusters. The same numbers give the same cluster.
    """
    try:
        from spark_bridge.generator.files import write_cluster
    except ModuleNotFoundError as error:
        raise click.ClickException(f"generating needs {error.name}: pip install 'klamm[plan]'") from None
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        chosen = _chosen(shape, numbers)
        with Progress(console=console, transient=True, disable=not is_animated(console)) as progress:
            task = progress.add_task("partitions", total=chosen.partitions)
            write_cluster(chosen, Path(output), lambda written: progress.advance(task, written))
    except PlanError as error:
        raise click.ClickException(str(error)) from None
    console.print(f"{chosen.partitions:,} partitions in {chosen.topics:,} topics on {chosen.brokers:,} brokers. Try:")
    paths = f"--snapshot {output}/snapshot --loads {output}/loads --brokers-table {output}/brokers.csv"
    console.print(f"klamm plan rebalance {paths}")


def _chosen(name: str, numbers: dict[str, Any]) -> Shape:
    """Return the shape with the numbers that were given.

    Raises:
        PlanError: That is no cluster.
    """
    return evolve(shape_named(name), **{key: number for key, number in numbers.items() if number is not None})
