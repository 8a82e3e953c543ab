"""`klamm plan`: plans for big moves, and what they change; nothing is moved by planning."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import click
from rich import box
from rich.console import Console
from rich.table import Table

from controller.admin.removal_planning import Plan, PlanError, PlanRequest, compute_plan
from controller.cli.planning.generating import generate_cluster
from controller.cli.running import run

_WIDTH: Final = 80
_MOST_ROWS: Final = 20


@click.group()
def plan() -> None:
    """Plan big moves of replicas on Spark."""


@plan.command("remove-brokers")
@click.option("--snapshot", required=True, metavar="FILE", help="The cluster, as `klamm state dump` prints it.")
@click.option("--brokers", required=True, metavar="IDS", help="The brokers to empty, such as 3,7.")
@click.option("-o", "--output", metavar="FILE", help="Where the plan goes; without it, to stdout.")
def remove_brokers(snapshot: str, brokers: str, output: str | None) -> None:
    """Plan new places for all replicas on some brokers.

    Only these replicas move. Racks are kept apart as far as possible, and the other brokers end as evenly loaded as
    that permits. The plan is Kafka's reassignment JSON, for `klamm reassignment execute`; the report goes to stderr.
    """
    request = PlanRequest(snapshot, _ids(brokers))
    console = Console(stderr=True, width=_WIDTH, highlight=False)
    with console.status("Planning on Spark, which takes some seconds to start ..."):
        made = run(partial(compute_plan, request), PlanError)
    _write(made.reassignment_json(), output)
    _report(made, console)


plan.add_command(generate_cluster)


def _ids(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(broker) for broker in text.split(",")}))
    except ValueError:
        raise click.ClickException(f"--brokers takes broker ids such as 3,7, not {text!r}") from None


def _write(text: str, output: str | None) -> None:
    """Write the whole plan or none of it."""
    if output is None:
        click.echo(text, nl=False)
        return
    path = Path(output)
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise click.ClickException(f"{output}: {error.strerror}") from None


def _report(made: Plan, console: Console) -> None:
    changed = [b for b in made.brokers if b.replicas_before != b.replicas_after]
    # Who is emptied first, then who receives most.
    changed.sort(key=lambda b: (b.replicas_after > b.replicas_before, b.replicas_before - b.replicas_after, b.id))
    table = Table("broker", "rack", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("replicas", "after", "preferred leader of", "after"):
        table.add_column(heading, justify="right")
    for b in changed[:_MOST_ROWS]:
        counts = (b.replicas_before, b.replicas_after, b.leaders_before, b.leaders_after)
        table.add_row(str(b.id), b.rack or "-", *map(str, counts))
    console.print(table)
    unseen = f", {len(changed) - _MOST_ROWS} of them not shown" if len(changed) > _MOST_ROWS else ""
    console.print(f"{len(changed)} of {len(made.brokers)} brokers change{unseen}.")
    console.print(f"Replicas to move: {made.moved_replicas}, in {len(made.partitions)} partitions.")
    spreads = f"{made.replica_spread} in replicas, {made.leader_spread} in preferred leaders"
    console.print(f"Most minus least where some arrive: {spreads}.")
