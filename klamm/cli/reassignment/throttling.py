"""`--throttle`: slow moves down, and lift the throttle when they are over."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import click

from controller.admin import move_throttles
from controller.admin.cluster_admin import ClusterAdmin
from controller.admin.move_admin import MoveAdmin
from klamm.cli.names import RATE
from klamm.cli.reassignment.files import Targets
from transport.messages import PartitionState
from transport.metadata import TopicPartition

throttle_option = click.option(
    "--throttle",
    type=RATE,
    metavar="BYTES_PER_SECOND",
    help="The most that each broker may send and fetch for the moves; lifted when they are over.",
)
preserve_option = click.option("--preserve-throttles", is_flag=True, help="Keep the throttles of moves that are over.")


async def begin(admin: MoveAdmin, states: Iterable[PartitionState], targets: Targets, rate: int) -> None:
    """Throttle the moves to `targets`, before they begin.

    Raises click.ClickException if Kafka's own controller is active.
    """
    if not isinstance(admin, ClusterAdmin):
        raise click.ClickException("Kafka's own controller is active: throttle its brokers with kafka-configs")
    await move_throttles.throttle(admin, states, targets, rate)


async def end(admin: MoveAdmin, partitions: Collection[TopicPartition]) -> None:
    """Lift the throttles of those partitions whose moves are over."""
    if isinstance(admin, ClusterAdmin) and await move_throttles.lift(admin, partitions):
        click.echo("the throttle of moves that are over was lifted", err=True)
