"""`klamm demo`: a cluster on this machine, a move under load, and a check that nothing was lost."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import click
import trio

from broker.client import GaveUp
from controller.admin.move_rows import COLUMNS, cells
from klamm.cli.demo import scenario
from klamm.cli.demo.clusters import BROKERS, CONTROLLERS
from klamm.cli.demo.planned_move import remove_broker_one
from klamm.cli.demo.process_cluster import process_cluster
from klamm.cli.demo.scenario import DemoFailed, DemoOutcome
from klamm.cli.demo.task_cluster import task_cluster
from klamm.cli.demo.trace_rows import TraceRow
from klamm.cli.output import print_table
from klamm.cli.running import configure_logs, run, until_signal
from klamm.interrupts import INTERRUPTED
from transport.zookeeper_server import DevelopmentServerError, find_jars, find_java


@click.command()
@click.option(
    "--store",
    type=click.Choice(["zookeeper", "memory"]),
    default="zookeeper",
    show_default=True,
    help="Processes with a development ZooKeeper, or one process without Java.",
)
@click.option("--kill-controller", is_flag=True, help="Kill the active controller in the middle of the move.")
def demo(store: str, kill_controller: bool) -> None:
    """Run six brokers and two controllers, and move a partition from {1,2,3} to {4,5,6} while records are written."""
    configure_logs(level=50)
    with tempfile.TemporaryDirectory(prefix="klamm-demo-") as directory:
        outcome = run(partial(_demo, Path(directory), store, kill_controller=kill_controller), DemoFailed, GaveUp)
    if outcome is None:
        sys.exit(INTERRUPTED)
    _show(outcome)
    sys.exit(1 if outcome.lost or outcome.gaps or outcome.faults else 0)


async def _demo(directory: Path, store: str, *, kill_controller: bool) -> DemoOutcome | None:
    """Run the demo. Return None if a signal ended it."""
    outcome = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(until_signal, nursery.cancel_scope)
        outcome = await _play(directory, store, kill_controller=kill_controller)
        nursery.cancel_scope.cancel()
    return outcome


def _require_zookeeper() -> None:
    """Raise click.ClickException if ZooKeeper cannot run, with the way to run the demo without it."""
    try:
        find_java(), find_jars()
    except DevelopmentServerError as error:
        raise click.ClickException(f"{error}, or run it without: klamm demo --store memory") from None


async def _play(directory: Path, store: str, *, kill_controller: bool) -> DemoOutcome:
    if store == "zookeeper":
        _require_zookeeper()
    start = process_cluster if store == "zookeeper" else task_cluster
    kind = "processes with a development ZooKeeper" if store == "zookeeper" else "tasks of one process without Java"
    click.echo(f"starting {len(BROKERS)} brokers and {len(CONTROLLERS)} controllers as {kind}")
    async with start(directory) as cluster, trio.open_nursery() as nursery:
        scene = await scenario.set_up(cluster, nursery)
        click.echo("a producer writes to orders-0 on {1,2,3} with acks=all; moving it to {4,5,6}")
        await scenario.move(scene, scenario.kill_active_controller if kill_controller else None)
        if find_spec("numpy") and find_spec("pyarrow"):
            await remove_broker_one(scene)
        else:
            click.echo("no planned move without NumPy and PyArrow: pip install 'klamm[plan]'")
        outcome = await scenario.judge(scene)
        nursery.cancel_scope.cancel()
    return outcome


def _show(outcome: DemoOutcome) -> None:
    print_table(["step", *COLUMNS, "zxid", "versions", "acked"], map(_cells, outcome.rows), narrow=True)
    click.echo(f"{outcome.acknowledged} records acknowledged, {outcome.read_back} read back, {outcome.lost} lost")
    if outcome.repeated:
        click.echo(f"{outcome.repeated} of them are duplicates: the producer retried")
    for fault in (*outcome.gaps, *outcome.faults):
        click.echo(f"fault: {fault}", err=True)
    if not outcome.faults:
        click.echo("the last row equals the store; 4, 5, 6 have equal logs and 1, 2, 3 have none")


def _cells(row: TraceRow) -> tuple[object, ...]:
    versions = f"{row.topic_version}/{row.state.partition_epoch}"
    return (row.stage.value, *cells(row.state), f"{row.zxid:#x}", versions, row.acknowledged)
